// The agents of a run: tree and transcript.
import { Fragment } from "preact";
import { useEffect, useState } from "preact/hooks";
import { get, type Fold, type Message, type Transcript as Doc, url } from "./api";
import type { Agent, Asked, RunModel } from "./model";
import { line, tokens, usd } from "./text";
import { Badge, Diff, Problem, Rows, Text, useData, useKeys } from "./parts";
import { ForkForm, turnsOf } from "./compare";
import { file } from "./file";

/** frozenText says what holds while the pool of a run is frozen. */
export const frozenText = "The run is frozen: only closing turns are granted";

export function Tree({ model, selected, open, select }: { model: RunModel; selected: string; open: (id: string) => void; select: (id: string) => void }) {
  const [at, setAt] = useState(selected);
  const rows = model.rows();
  const story = new Map<string, string>(); // of few agents, so that a tree of 10,000 looks none of them up in a list
  for (const h of model.handoffs) for (const id of [h.from, h.to]) if (!story.has(id)) story.set(id, model.story(id).join("; "));
  return (
    <>
      {model.frozen && !model.result && <p class="doing">{frozenText}{file ? "" : ": a new limit (b) lifts the freeze"}.</p>}
      <div class="head" aria-hidden="true"><span class="grow">Agent</span><span class="w8">State</span><span class="num narrow">Turn</span><span class="num narrow">Calls</span><span class="num">Tokens</span><span class="num">Dollars</span><span class="w8 narrow">Node</span></div>
      <Rows<Agent> rows={rows} id={(a) => a.id} label="Agents" selected={at} select={(id) => { setAt(id); select(id); }} open={(a) => open(a.id)} row={(a) => <>
        <span class="grow"><span class="branch">{"· ".repeat(Math.min(a.depth, 12))}</span><b>{line(a.name, 40)}</b> <small>{a.id}</small> <small class="doing">{line(model.doing(a), 60)}</small> <small>{story.has(a.id) ? "· " + line(story.get(a.id), 120) : ""}</small></span>
        <span class="w8"><Badge narrow state={a.state === "done" ? a.reason || "done" : a.state} /></span><span class="num narrow">{a.turn}</span><span class="num narrow">{a.calls}</span><span class="num">{tokens(a.tokens)}</span><span class="num">{usd(a.usd)}</span><span class="w8 narrow">{line(a.node, 20)}</span></>} />
    </>
  );
}

export function Transcript({ run, agent, model }: { run: string; agent: string; model: RunModel }) {
  const version = Math.floor((model.changed.get(agent) ?? 0));
  const [settled, settle] = useState(version);
  useEffect(() => { const t = setTimeout(() => settle(version), 250); return () => clearTimeout(t); }, [version]);
  const { data, error } = useData(file ? async () => file!.transcripts[agent] ?? null : () => get<Doc>(url`/runs/${run}/transcript?agent=${agent}`), 0, `${run} ${agent} ${settled}`);
  const [all, setAll] = useState(false);
  const [fork, setFork] = useState(0); // after which turn; 0: no form
  const turns = turnsOf(data?.messages ?? [], model.agents.get(agent)?.turn ?? 0);
  const newest = Math.max(0, ...turns);
  useKeys({ e: () => setAll(!all), f: () => { if (!file && newest) setFork(newest); } });
  const results = new Map<string, { text: string; error?: boolean }>();
  for (const m of data?.messages ?? []) for (const r of m.results ?? []) results.set(r.call, r);
  const delta = model.delta.get(agent);
  const shown = (data?.messages ?? []).map((m, i) => ({ m, turn: turns[i], at: i })).filter(({ m }) => m.tombstone || !m.results?.length);
  const folds = data?.folds ?? [];
  const hidden = (data?.messages ?? []).filter((m) => m.tombstone).length;
  return (
    <div class="pad transcript" tabIndex={0} role="region" aria-label="Transcript">
      <div class="bar"><h2>{line(data?.name ?? agent)} <small>{agent}</small></h2><button onClick={() => setAll(!all)} aria-pressed={all}>{all ? "Fold" : "Unfold"} tool calls <kbd>e</kbd></button></div>
      <Problem text={error} />
      {data?.system && <details><summary>System prompt, {data.system.length} characters</summary><Text text={data.system} /></details>}
      {!!(folds.length || hidden) && <p class="quiet">{[folds.length && `${folds.length} ${folds.length === 1 ? "compaction" : "compactions"}`, hidden && `${hidden} retracted ${hidden === 1 ? "message" : "messages"}`].filter(Boolean).join(", ")}: each is marked at its place.</p>}
      {model.handoffs.filter((h) => h.to === agent).map((h) => <p key={h.from + h.call} class="handoff">{line(model.taken(h))}</p>)}
      {shown.map(({ m, turn, at }, i) => <Fragment key={at}>
        {folds.filter((f) => f.upto <= at && f.upto > (shown[i - 1]?.at ?? -1)).map((f) => <Compaction key={f.upto} fold={f} />)}
        {m.tombstone ? <Retracted m={m} turn={turn} /> : <Said m={m} fork={!file && turn ? () => setFork(turn) : undefined} turn={turn} results={results} all={all} asked={(call) => model.asked(agent, call)} given={(call) => model.handoffs.filter((h) => h.from === agent && h.call === call).map((h) => model.given(h)).join("; ")} />}
      </Fragment>)}
      {folds.filter((f) => f.upto > (shown.at(-1)?.at ?? -1)).map((f) => <Compaction key={f.upto} fold={f} />)}
      {fork > 0 && <ForkForm run={run} agent={agent} turn={fork} close={() => setFork(0)} />}
      {delta && <section class="said assistant" aria-live="off"><h3>assistant, as it arrives</h3><Text text={delta} /></section>}
    </div>
  );
}

// Compaction stands where a summary replaces the messages above it in later prompts.
function Compaction({ fold }: { fold: Fold }) {
  return (
    <details class="hidden-part compaction">
      <summary>Compaction in turn {fold.turn}: later prompts have {fold.plain ? "an excerpt" : "a summary"} of {fold.text.length} characters in place of the {fold.upto} messages above</summary>
      <Text text={fold.text} />
    </details>
  );
}

// Retracted stands where a message was retracted: it stays in the record and is never sent.
function Retracted({ m, turn }: { m: Message; turn: number }) {
  const length = (m.text?.length ?? 0) + (m.results ?? []).reduce((n, r) => n + r.text.length, 0), calls = m.calls?.length ?? 0;
  return (
    <details class="hidden-part retracted">
      <summary>Retracted message of the {line(m.role)}{turn ? `, turn ${turn}` : ""}: {length} characters{calls ? `, ${calls} tool ${calls === 1 ? "call" : "calls"}` : ""}, in the record and never sent again</summary>
      {m.text ? <Text text={m.text} /> : null}
      {(m.calls ?? []).map((c) => <Text key={c.id} text={c.name + " " + c.args} />)}
      {(m.results ?? []).map((r) => <Text key={r.call} text={r.text} />)}
      {!length && !calls && <p class="quiet">Nothing of it was kept.</p>}
    </details>
  );
}

function Said({ m, results, all, given, asked, turn, fork }: { m: Message; asked: (call: string) => Asked | undefined; turn: number; fork?: () => void; results: Map<string, { text: string; error?: boolean }>; all: boolean; given: (call: string) => string }) {
  return (
    <section class={"said " + (m.role === "assistant" ? "assistant" : "user")}>
      <h3>{line(m.role)}{m.usage ? <small> {tokens(m.usage.input_tokens)} in, {tokens(m.usage.output_tokens)} out</small> : null}{fork && <button class="link fork" aria-label={`Fork after turn ${turn}`} onClick={fork}>fork after turn {turn}</button>}</h3>
      {m.text && <Text text={m.text} />}
      {(m.calls ?? []).map((c) => {
        const r = results.get(c.id), taken = given(c.id), q = r ? undefined : asked(c.id);
        return (<>
          <details key={c.id} open={all} class={r?.error ? "call failed" : "call"}>
            <summary><b>{line(c.name, 60)}</b> <code>{line(c.args, 120)}</code> {r ? <small>{r.error ? "failed, " : ""}{r.text.length} characters</small> : q ? <small class="doing">{q.isCall ? "waits for approval" : "waits for an answer"}</small> : <small>no result yet</small>}</summary>
            <Args text={c.args} />
            {r && (looksLikeDiff(r.text) ? <Diff text={r.text} /> : <Text text={r.text} />)}
          </details>
          {taken && <p class="handoff">{line(taken)}</p>}
        </>);
      })}
    </section>
  );
}

const looksLikeDiff = (t: string): boolean => /^(---|\+\+\+|@@|diff )/m.test(t.slice(0, 4000)) && /^@@/m.test(t.slice(0, 4000));

// The arguments of an edit are shown as the diff that they are.
function Args({ text }: { text: string }) {
  let a: any = null;
  try { a = JSON.parse(text); } catch { /* the model wrote something else: it is shown as it is */ }
  if (a && typeof a === "object") {
    const before = a.old_string ?? a.old_text ?? a.old, after = a.new_string ?? a.new_text ?? a.new ?? a.content;
    if (typeof after === "string") {
      const mark = (s: string, sign: string) => s.split("\n").map((l) => sign + l).join("\n");
      const rest = Object.fromEntries(Object.entries(a).filter(([, v]) => v !== before && v !== after));
      return <><Text text={JSON.stringify(rest)} /><Diff text={(typeof before === "string" ? mark(before, "-") + "\n" : "") + mark(after, "+")} /></>;
    }
    return <Text text={JSON.stringify(a, null, 1)} />;
  }
  return <Text text={text} />;
}
