// The views that are about no single run: runs, inbox.
import { useEffect, useState } from "preact/hooks";
import { get, post, type Question, type RunInfo } from "./api";
import { age, line, spendOf, spent } from "./text";
import { Badge, Diff, Form, Problem, Rows, go, useData, useKeys } from "./parts";

export function Runs() {
  const { data, error, reload } = useData(() => get<RunInfo[]>("/runs?limit=1000"), 2000, "");
  const [find, setFind] = useState("");
  const [state, setState] = useState("");
  const [at, setAt] = useState("");
  const [starting, setStarting] = useState(false);
  const words = find.toLowerCase().split(/\s+/).filter(Boolean);
  const list = (data ?? []).filter((r) => (!state || r.state === state) && words.every((w) => `${r.title} ${r.run_id} ${r.result?.stop_reason ?? ""} ${r.model}`.toLowerCase().includes(w)));
  useKeys({ "/": () => document.getElementById("find")?.focus(), n: () => setStarting(true) });
  useEffect(() => { if (!at && list.length) setAt(list[0].run_id); }, [list.length]);
  return (
    <main class="fill">
      <div class="bar">
        <h1>Runs</h1>
        <input id="find" type="search" aria-label="Search titles, ids and stop reasons" placeholder="Search  /" value={find} onInput={(e) => setFind(e.currentTarget.value)} />
        <select aria-label="State" value={state} onChange={(e) => setState(e.currentTarget.value)}>{["", "live", "queued", "parked", "finished", "interrupted"].map((s) => <option key={s} value={s}>{s || "all states"}</option>)}</select>
        <button class="primary" onClick={() => setStarting(true)}>Start a run <kbd>n</kbd></button>
      </div>
      <Problem text={error} />
      {data && !list.length && <p class="empty">{data.length ? "No run matches." : "There are no runs yet. Press n to start one."}</p>}
      <Rows rows={list} id={(r) => r.run_id} label="Runs" selected={at} select={setAt} open={(r) => go("#/run/" + r.run_id)} height={44} row={(r) => <>
        <Badge state={r.state === "finished" ? r.result?.stop_reason ?? "finished" : r.state} />
        <span class="grow two"><b>{line(r.title) || r.run_id}</b><small>{r.run_id.slice(0, 10)} · {line(r.model, 60)}{r.node ? " · " + line(r.node, 30) : ""}</small></span>
        <span class="num">{spent(spendOf(r.result, r.spend))}</span><span class="num narrow">{r.result?.agents?.length ?? ""}<small>{r.result?.agents?.length ? " agents" : ""}</small></span><span class="num narrow">{age(r.started)}</span></>} />
      {starting && <StartRun close={() => { setStarting(false); reload(); }} />}
    </main>
  );
}

function StartRun({ close }: { close: () => void }) {
  const { data } = useData(() => get<{ name: string; description: string }[]>("/agents"), 0, "");
  return <Form title="Start a run" confirm="Start" close={close} fields={[
    { name: "prompt", label: "Task", type: "area", required: true },
    { name: "agent", label: "Agent", options: ["", ...(data ?? []).map((a) => a.name)] },
    { name: "model", label: "Model (empty: the node chooses)" },
    { name: "dir", label: "Directory (below a --root of the node)" },
    { name: "max_tokens", label: "Limit in tokens", type: "number" },
    { name: "max_budget_usd", label: "Limit in US dollars", type: "number" },
    { name: "max_turns", label: "Turns of the root agent", type: "number" },
  ]} submit={async (v) => {
    const body: Record<string, unknown> = {};
    for (const [k, x] of Object.entries(v)) if (x) body[k] = /^max_/.test(k) ? Number(x) : x;
    const r = await post<{ run_id: string }>("/runs", body);
    go("#/run/" + r.run_id);
  }} />;
}

export function Inbox({ run }: { run?: string }) {
  const { data, error, reload } = useData(() => get<Question[]>(run ? `/runs/${run}/questions` : "/questions"), 2000, run);
  const [at, setAt] = useState(0);
  const [deny, setDeny] = useState<Question | null>(null);
  const [reply, setReply] = useState<Question | null>(null);
  const [sign, setSign] = useState<{ q: Question; more?: Record<string, string> } | null>(null);
  const [name, setName] = useState("");
  const [said, setSaid] = useState("");
  const list = data ?? [];
  const q = list[Math.min(at, list.length - 1)];
  const send = async (q: Question, decision: string, more: Record<string, string> = {}) => {
    await post(`/runs/${q.run_id}/answer`, { query: q.query, agent: q.agent, digest: q.digest, decision, by: "page", ...more });
    const next = decision === "approve" && needsTwo(q) && !q.approved_by ? "another person must approve it, too" : "the first answer counts";
    setSaid(`${decision}: recorded for ${q.agent} of ${q.run_id.slice(0, 10)}; ${next}`);
    reload();
  };
  const quick = (q: Question | undefined, decision: string, more?: Record<string, string>) => {
    if (q && decision === "approve" && needsTwo(q)) setSign({ q, more });
    else if (q) send(q, decision, more).catch((e: Error) => setSaid(e.message));
  };
  useKeys({ j: () => setAt(Math.min(at + 1, list.length - 1)), k: () => setAt(Math.max(0, at - 1)), a: () => isCall(q) && quick(q, "approve"), A: () => isCall(q) && quick(q, "approve", { always: "run" }),
    d: () => q && setDeny(q), w: () => q && !isCall(q) && setReply(q) });
  return (
    <main>
      {!run && <h1>Inbox</h1>}
      <Problem text={error} /><p role="status" class="quiet">{line(said)}</p>
      {data && !list.length && <p class="empty">No open questions.</p>}
      <ol class="cards">
        {list.map((x, i) => (
          <li key={x.run_id + x.query} class={i === at ? "card current" : "card"} onFocusIn={() => setAt(i)}>
            <p class="quiet"><a href={"#/run/" + x.run_id}>{x.run_id.slice(0, 10)}</a> · {line(x.agent)} · <Badge state={x.reason} /> {x.asked_ms ? "asked " + age(x.asked_ms) + " ago" : ""}{x.due_ms ? " · expires " + new Date(x.due_ms).toLocaleTimeString() : ""}</p>
            {needsTwo(x) && <p><strong>{x.approved_by ? `1 of ${x.approvals} approved, by ${line(x.approved_by)}` : `0 of ${x.approvals} approved`}</strong></p>}
            <Diff text={x.question} />
            {x.rule && <p class="quiet">For this run allows: <code>{line(x.rule)}</code></p>}
            <div class="buttons">
              {isCall(x) ? <>
                <button class="primary" onClick={() => quick(x, "approve")}>Once <kbd>a</kbd></button>
                {x.rule && <button onClick={() => quick(x, "approve", { always: "run" })}>For this run <kbd>A</kbd></button>}
              </> : <button class="primary" onClick={() => setReply(x)}>Answer <kbd>w</kbd></button>}
              <button class="danger" onClick={() => setDeny(x)}>Deny <kbd>d</kbd></button>
            </div>
          </li>
        ))}
      </ol>
      {sign && <Form title="Approve" confirm="Approve" note={<p class="quiet">{`${sign.q.approvals} different people must approve this call.`}</p>} close={() => setSign(null)} fields={[{ name: "by", label: "Your name", value: name, required: true }]} submit={(v) => { setName(v.by!); return send(sign.q, "approve", { ...sign.more, by: v.by! }); }} />}
      {deny && <Form title="Deny" danger confirm="Deny" close={() => setDeny(null)} fields={[{ name: "text", label: "Reason, which the agent reads", type: "area" }]} submit={(v) => send(deny, "deny", { text: v.text })} />}
      {reply && <Form title="Answer" confirm="Send" note={<Diff text={reply.question} />} close={() => setReply(null)} fields={[{ name: "text", label: "Answer", type: "area", required: true }]} submit={(v) => send(reply, "text", { text: v.text })} />}
    </main>
  );
}

const needsTwo = (q: Question): boolean => (q.approvals ?? 0) > 1;

const isCall = (q: Question | undefined): boolean => !!q && (!!q.digest || !!q.call && q.reason !== "needs_human");
