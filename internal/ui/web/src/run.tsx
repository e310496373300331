// One run: its head, and the views of it.
import { useEffect, useReducer, useRef, useState } from "preact/hooks";
import { follow, get, isFinal, owner, post, type Result, type RunInfo, type Spend, url } from "./api";
import { RunModel } from "./model";
import { json, line, modelName, reasonText, spendOf, spent, took, tokens, usd } from "./text";
import { Badge, Form, Problem, Text, explain, go, leaveField, useData, useKeys } from "./parts";
import { Inbox, myName } from "./inbox";
import { Transcript, Tree } from "./agents";
import { Messages } from "./messages";
import { Timeline } from "./timeline";
import { Budget, BudgetForm } from "./budget";
import { CompareForm } from "./compare";
import { Logs } from "./logs";
import { file } from "./file";

export const tabs = ["tree", "transcript", "stop", "questions", "budget", "timeline", "messages", "events", "logs"] as const;
const titles: Record<string, string> = { tree: "Tree", transcript: "Transcript", stop: "Why it stopped", questions: "Questions", budget: "Budget", timeline: "Timeline", messages: "Messages", events: "Events", logs: "Log entries" };

// What only a node can answer is not in a file.
const isShown = (tab: string): boolean => !file || (tab !== "questions" && tab !== "logs");

/** useRun follows a run; it draws at most once a frame. */
function useRun(run: string): { model: RunModel; info: RunInfo | null; status: string; why: string; error: string } {
  const model = useRef(new RunModel());
  const [info, setInfo] = useState<RunInfo | null>(null);
  const [status, setStatus] = useState("reading");
  const [why, setWhy] = useState("");
  const [error, setError] = useState("");
  const [, draw] = useReducer((n: number) => n + 1, 0);
  useEffect(() => {
    model.current = new RunModel();
    const m = model.current;
    let over = false, waiting = false, timer = 0, brief = true, newest = 0;
    const soon = () => { if (!waiting) { waiting = true; requestAnimationFrame(() => { waiting = false; if (!over) draw(0); }); } };
    const look = async () => {
      const turn = ++newest; // the end of the run begins a look at once: what an older one still reads is not shown after it
      const isPast = () => over || turn !== newest;
      try {
        const show = (i: RunInfo) => { if (isPast()) return; setInfo(i); setError(""); m.addLive(i.live_agents ?? []); if (i.result) m.snapshot(i.result.agents ?? []); soon(); };
        let i = file ? file.info : await get<RunInfo>(url`/runs/${run}` + (brief ? "?brief=true" : ""));
        show(i);
        if (isPast()) return;
        if (!file && brief && (i.state === "finished" || (i.agents_started ?? 0) <= manyAgents)) show(i = await get<RunInfo>(url`/runs/${run}`));
        if (isPast()) return;
        brief = (i.result?.agents?.length ?? i.agents_started ?? 0) > manyAgents;
        if (i.state === "finished") return;
      } catch (e) {
        if (isPast()) return;
        setError(explain(e));
        if (isFinal(e)) return;
      }
      timer = window.setTimeout(look, 2000);
    };
    void look();
    if (file) { for (const e of file.events) m.add(e); setStatus("file"); soon(); return; }
    const stop = follow(run, { events: (list) => { for (const e of list) m.add(e); soon(); }, glance: (e) => { m.glance(e); soon(); }, status: (s, why = "") => { if (!over) { setStatus(s); setWhy(why); } if (s === "ended") { clearTimeout(timer); void look(); } } });
    return () => { over = true; clearTimeout(timer); stop(); };
  }, [run]);
  return { model: model.current, info, status, why, error };
}

// manyAgents is how many agents a run has of which the node is asked for less: their list costs it a replay of the run's log.
const manyAgents = 200;

// spendNow is the spend of a run; of one at work its events are newer than what the node has published.
function spendNow(r: Result | null, info: RunInfo | null, model: RunModel): Spend | undefined {
  const s = spendOf(r, info?.spend), at = model.samples.at(-1);
  return !r && s && at ? { ...s, budget: { ...s.budget, used: at[1], reserved: at[2], limit: at[3] || s.budget.limit } } : s;
}

// What the state of the connection is: the run's own has a badge.
const statusText: Record<string, string> = { reading: "catching up with the logs", glancing: "connected, catching up with the logs", live: "connected", polling: "connected, each second: other tabs have the streams", hidden: "paused while the tab is hidden", lost: "behind, trying again", ended: "ended", gone: "the run is gone", refused: "the node refuses the events", file: "a file" };

// scroll moves the view of a run that is no list.
const scroll = (by: number) => () => document.querySelector("main > .pad")?.scrollBy(0, by * 60);
const scrollKeys = { j: scroll(1), k: scroll(-1), ArrowDown: scroll(1), ArrowUp: scroll(-1) };

// useOrigin is what a run is a fork of; of a run of many agents only its events say so.
function useOrigin(run: string, info: RunInfo | null, model: RunModel): string {
  const asks = !file && !!info && (info.agents_started ?? 0) <= manyAgents;
  const { data } = useData(asks ? () => get<RunInfo>(url`/runs/${run}?describe=true`) : null, 0, `${run} ${asks}`);
  const past = model.started?.past;
  return data?.description?.fork ?? (past?.run && !past.conversation_id ? String(past.run) : "");
}

// Facts of a run, below its title: its id, which a person copies, and of a file what it is of.
function Facts({ run, info, model }: { run: string; info: RunInfo | null; model: RunModel }) {
  const id = info?.run_id ?? run, origin = useOrigin(run, info, model), [from, place] = origin.split("@");
  const made = file?.exported ? [info?.agent && "agent " + line(info.agent, 40), "model " + modelName(info?.model), "exported " + file.exported.slice(0, 19).replace("T", " ") + " UTC"].filter(Boolean) : [];
  return <span class="quiet">run <code class="id" title={id}>{file ? id : id.slice(0, 10)}</code>{made.map((m) => " · " + m)}{from && <> · fork of {file ? from.slice(0, 10) : <a href={"#/run/" + from}>{line(from.slice(0, 10))}</a>}{place ? ` at ${line(place, 40)}` : ""}</>}</span>;
}

export function Run({ run, tab, agent: who }: { run: string; tab: string; agent: string }) {
  const agent = who === "super" ? "" : who; // the supervisor has a log, and is no agent
  const { model, info, status, why, error } = useRun(run);
  const [form, setForm] = useState("");
  const open = (t: string, a = agent) => go(`#/run/${run}/${t}${a ? "/" + a : ""}`);
  const live = !file && info?.state !== "finished" && status !== "gone";
  const keys: Record<string, () => void> = {};
  tabs.forEach((t, i) => { if (isShown(t)) keys[String(i + 1)] = () => open(t); });
  if (!file) keys.v = () => setForm("compare");
  if (live) Object.assign(keys, { x: () => setForm("cancel"), s: () => setForm("steer"), b: () => setForm("budget") });
  if (tab === "transcript" || tab === "stop" || tab === "budget" || tab === "events") Object.assign(keys, scrollKeys);
  useKeys(keys);
  useEffect(() => document.querySelector(".tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" }), [tab]);
  const r = info?.result ?? model.result;
  const asking = model.countOpen(), isFrozen = live && (status === "live" || status === "polling" ? model.frozen : !!info?.spend?.budget.frozen);
  const count = Math.max(model.agents.size, info?.agents_started ?? 0);
  return (
    <main class="fill">
      <div class="bar">
        <h1>{line(info?.title || model.started?.goal || run, 120)}</h1>
        {info && <Badge state={info.state === "finished" ? r?.stop_reason ?? "finished" : info.state} />}{isFrozen && <Badge state="frozen" />}
        <Facts run={run} info={info} model={model} />
        <span class="quiet">{spent(spendNow(r, info, model), " tokens")} · {count} {count === 1 ? "agent" : "agents"}{model.handoffs.length ? ` · ${model.handoffs.length} ${model.handoffs.length === 1 ? "handoff" : "handoffs"}` : ""}</span>
        <span class="buttons"><span class={"status " + status} role="status">{statusText[status]}{status === "reading" || status === "glancing" ? `: ${model.count} events` : why ? ": " + line(why) : ""}</span>
          {!file && <button onClick={() => setForm("compare")}>Compare <kbd>v</kbd></button>}
          {live && <><button onClick={() => setForm("steer")}>Steer <kbd>s</kbd></button><button onClick={() => setForm("budget")}>Budget <kbd>b</kbd></button><button class="danger" onClick={() => setForm("cancel")}>Cancel <kbd>x</kbd></button></>}</span>
      </div>
      <Problem text={error} />
      {file?.left.map((l) => <p key={l} class="quiet">{line(l)}</p>)}
      <nav class="tabs" aria-label="Views of the run">{tabs.map((t, i) => !isShown(t) ? null : <a key={t} href={`#/run/${run}/${t}${who ? "/" + who : ""}`} aria-current={t === tab ? "page" : undefined}>{titles[t]}{t === "questions" && asking ? <> <span class="badge s-parked">{asking} open</span></> : null} <kbd>{i + 1}</kbd></a>)}</nav>
      {tab === "tree" && <Tree model={model} selected={agent || "root"} open={(a) => open("transcript", a)} select={() => {}} />}
      {tab === "transcript" && <Transcript run={run} agent={agent || "root"} model={model} />}
      {tab === "stop" && <Stop info={info} model={model} run={run} />}
      {tab === "questions" && <Inbox run={run} />}
      {tab === "budget" && <Budget run={run} model={model} live={live} />}
      {tab === "timeline" && <Timeline run={run} live={live} open={(a) => open("transcript", a)} />}
      {tab === "messages" && <Messages model={model} run={run} />}
      {tab === "events" && <Events model={model} />}
      {tab === "logs" && <Logs run={run} agent={who || "root"} live={live} />}
      {form === "cancel" && <Form title="Cancel the run" danger confirm="Cancel the run" close={() => setForm("")} fields={[{ name: "why", label: "Reason" }, { name: "now", label: "When", options: ["after running calls end", "now, abort running calls"] }]}
        submit={async (v, request_id) => { await post(url`/runs/${run}/cancel`, { request_id, why: v.why, by: myName() || owner() || "page", now: v.now.startsWith("now"), wait_ms: -1 }); }} />}
      {form === "steer" && <Form title={"Message to " + (agent || "root")} confirm="Send" close={() => setForm("")} fields={[{ name: "text", label: "The agent reads it at its next turn", type: "area", required: true }]}
        submit={async (v, request_id) => { await post(url`/runs/${run}/steer`, { request_id, agent: agent || undefined, text: v.text }); }} />}
      {form === "compare" && <CompareForm run={run} close={() => setForm("")} />}
      {form === "budget" && <BudgetForm run={run} close={() => setForm("")} />}
    </main>
  );
}

// In a file, what only the page of a node has is left out.
const remedies: [RegExp, string][] = [
  [/^(token_budget|cost_budget)/, (file ? "" : "While a run is live, b raises its limit. ") + "Begin again with the history of this one and a larger limit: troupe run --fork RUN --max-tokens N, or --max-budget-usd X."],
  [/max_turns|max_tool_calls|timeout/, "Begin again with the history of this run and a larger limit: troupe run --fork RUN with --max-turns, --max-tool-calls or --timeout."],
  [/needs_human|resume_unsafe|evidence/, file ? "A question is open: troupe answer RUN." : "Answer the open question: the view Questions."],
  [/vetoed|policy|stop_hook|guardrail/, "The rule below decided. troupe policy show RUN prints all rules."],
  [/model_error|malformed|prompt_too_long|max_output/, "The provider failed. troupe doctor checks models and keys; --fallback names another model."],
  [/cancel|aborted/, "Somebody canceled the run. Begin again with its history: troupe run --fork RUN."],
];

function Stop({ info, model, run }: { info: RunInfo | null; model: RunModel; run: string }) {
  const r = info?.result ?? model.result;
  const last = model.recent.filter((e) => /^(stop|limit|budget\.(exhausted|denied)|error|policy|guardrail|loop|run|agent\.(finished|parked)|warning|gate)/.test(e.kind)).slice(-12);
  const short = [...model.recent].reverse().find((e) => e.data?.short)?.data?.short;
  const rule = [...model.recent].reverse().find((e) => e.data?.policy?.rule)?.data?.policy;
  const remedy = remedies.find(([p]) => p.test(r?.stop_reason ?? ""))?.[1];
  if (!r) return <p class="empty">The run has not reported anything yet.</p>;
  return (
    <div class="pad" tabIndex={0} role="region" aria-label="View">
      <dl>
        <dt>Reason</dt><dd>{r.stop_reason ? <Badge state={r.stop_reason} /> : "it has not stopped"}{r.partial && (r.stop_reason ? " the result is partial" : ": what follows is how far it is")}</dd>
        {r.detail && <><dt>Detail</dt><dd>{line(r.detail, 1000)}</dd></>}
        {short && <><dt>{r.stop_reason ? "Limit" : "Short so far"}</dt><dd>{r.stop_reason ? "" : "an attempt was not covered, and the run goes on: "}{line(short.of)} of the {line(short.whose)}: limit {tokens(short.limit)}, used {tokens(short.used)}, free {tokens(short.free)}, needed {tokens(short.need)}</dd></>}
        {rule && <><dt>Policy</dt><dd>rule {line(rule.rule)}, version {rule.version}</dd></>}
        {r.cancel && <><dt>Cancel</dt><dd>{line(r.cancel.text)}{r.cancel.by ? ", asked for by user " + line(r.cancel.by, 80) : ""}{r.cancel.why ? ": " + line(r.cancel.why, 500) : ""}</dd></>}
        <dt>Work</dt><dd>{r.num_turns} {r.num_turns === 1 ? "turn" : "turns"} in {took(r.duration_ms)}{[r.model_ms && `models ${took(r.model_ms)}`, r.tool_ms && `tools ${took(r.tool_ms)}`].filter(Boolean).map((t, i) => (i ? ", " : "; ") + t)}</dd>
        {remedy && <><dt>What to do</dt><dd>{remedy.replace(/RUN/g, run.slice(0, 10))}</dd></>}
      </dl>
      <h2>Result</h2><Text text={r.result || "(none)"} />
      <h2>Last decisions</h2>
      <ul class="events">{last.map((e) => <li key={e.id}><time>{e.ts.slice(11, 23)}</time> <b>{line(e.kind)}</b> {line(e.agent)} <span>{line(JSON.stringify(e.data ?? {}), 300)}</span></li>)}</ul>
    </div>
  );
}

function Events({ model }: { model: RunModel }) {
  const [find, setFind] = useState("");
  useKeys({ "/": () => document.getElementById("find-event")?.focus() });
  const list = model.recent.filter((e) => !find || e.kind.includes(find) || e.agent.includes(find)).slice(-300).reverse();
  return (
    <div class="pad" tabIndex={0} role="region" aria-label="View">
      <input id="find-event" type="search" aria-label="Kind or agent" placeholder="Kind or agent  /" value={find} onInput={(e) => setFind(e.currentTarget.value)} onKeyDown={leaveField()} />
      <p class="quiet">The newest {list.length} of {model.count} events that were read.</p>
      <ul class="events" id="events" data-count={model.count}>{list.map((e) => <li key={e.id}><details><summary><time>{e.ts.slice(11, 23)}</time> <b>{line(e.kind)}</b> {line(e.agent)} <span>{line(JSON.stringify(e.data ?? {}), 160)}</span></summary><Text text={json(e)} /></details></li>)}</ul>
    </div>
  );
}
