// The budget of a run: its pool, what models and agents have spent, and the limits of the run and of parts of the tree. A form
// shows what changes, old → new, before anything is sent.
import { useRef, useState } from "preact/hooks";
import { Refused, get, post, type Amount, type RunBudget, url } from "./api";
import type { RunModel } from "./model";
import { line, modelName, tokens, usd } from "./text";
import { ofMoney, ofTokens, type Figure } from "./amount";
import { Form, Problem, useData } from "./parts";
import { AgentChart, BudgetChart } from "./charts";
import { frozenText } from "./agents";
import { file } from "./file";

interface Subtree { limit: Amount; used: Amount; reserved: Amount; frozen?: boolean }
type AgentBudget = RunBudget["agents"][number] & { subtree?: Subtree };

const rowsMax = 200; // agents in the table

/** figures are the three limits: how each is called, its field in a request, and how it is written. */
const figures: { name: "tokens" | "nano_usd" | "calls"; field: string; label: string; show: (n: number) => string; figure?: Figure; unit: number }[] = [
  { name: "tokens", field: "tokens", label: "Tokens", show: (n) => (n ? tokens(n) : "no limit"), figure: ofTokens, unit: 1 },
  { name: "nano_usd", field: "nano_usd", label: "US dollars", show: (n) => (n ? usd(n / 1e9) : "no limit"), figure: ofMoney, unit: 1e9 },
  { name: "calls", field: "tool_calls", label: "Tool calls", show: (n) => (n ? String(n) : "no limit"), unit: 1 },
];

interface Change { body: Record<string, unknown>; lines: string[]; danger?: boolean }

/** BudgetForm changes the limits of the run or, with an agent, of the agent and those below it. */
export function BudgetForm({ run, agent = "", close }: { run: string; agent?: string; close: () => void }) {
  const { data } = useData(() => get<RunBudget>(url`/runs/${run}/budget`), 0, run);
  const [plan, setPlan] = useState<Change | null>(null);
  const next = useRef<Change | null>(null);
  if (!data) return null;
  const of = agent ? (data.agents.find((a) => a.id === agent) as AgentBudget | undefined) : undefined;
  const limit: Amount = agent ? of?.subtree?.limit ?? { tokens: 0, nano_usd: 0, calls: 0 } : data.budget.limit;
  const used: Amount = agent ? of?.subtree?.used ?? of?.used ?? { tokens: 0, nano_usd: 0, calls: 0 } : data.budget.used;
  const frozen = agent ? !!of?.subtree?.frozen : data.budget.frozen;
  const whose = agent ? `${line(of?.name ?? agent)} (${line(agent)}) and the agents below it` : "the run";
  const choices = ["change the limits", frozen ? "unfreeze" : agent ? "freeze: they wait at their next turn" : "freeze: only closing turns"];
  if (plan) return <Form key="confirm" title={`Change the budget of ${whose}?`} danger={plan.danger} confirm="Send" close={close} fields={[]}
    note={<ul class="changes">{plan.lines.map((l) => <li key={l}>{l}</li>)}</ul>} submit={async (_, request_id) => { await post(url`/runs/${run}/budget`, { request_id, ...plan.body, agent: agent || undefined, by: "page" }); }} />;
  return <Form key="form" title={`Budget of ${whose}`} confirm="Show what changes" close={() => (next.current ? setPlan(next.current) : close())}
    note={<>{frozen && <p><strong>{agent ? "They are frozen: they wait at their next turn." : frozenText + "."}</strong> {agent ? "Choose unfreeze." : "Unfreeze it, or give a new limit, which lifts the freeze, too."}</p>}<p class="quiet">Empty fields stay as they are. Used: {tokens(used.tokens)} tokens, {usd(used.nano_usd / 1e9)}, {used.calls} tool calls.</p></>}
    fields={[...figures.map((f) => ({ name: f.name, label: `${f.label} (now ${f.show(limit[f.name])})`, figure: f.figure, type: f.figure ? "text" : "number" })), { name: "freeze", label: "Or", options: choices, value: frozen ? choices[1] : choices[0] }]}
    submit={async (v) => { next.current = changeOf(v, limit, used, frozen, choices, !agent); }} />;
}

// sameLimit is a limit that a run has: naming it lifts the freeze of the run, and changes nothing else.
function sameLimit(limit: Amount): Record<string, number> {
  const f = figures.find((f) => limit[f.name] > 0);
  if (!f) throw new Refused(400, "the run has no limit", "give it one: that lifts the freeze");
  return { [f.field]: limit[f.name] };
}

/** changeOf is what a filled form would change; it throws if that is nothing. */
function changeOf(v: Record<string, string>, limit: Amount, used: Amount, frozen: boolean, choices: string[], lifts: boolean): Change {
  if (v.freeze !== choices[0] && v.freeze !== "unfreeze") return { body: { freeze: true }, lines: [`at work → ${v.freeze}`], danger: true };
  const unfreezes = v.freeze === "unfreeze";
  const limits: Record<string, number> = {}, lines: string[] = [];
  for (const f of figures) {
    const n = v[f.name] ? Math.round(Number(v[f.name]) * f.unit) : limit[f.name];
    if (!v[f.name] || n === limit[f.name]) continue;
    if (!(n > 0)) throw new Refused(400, `${f.label}: a limit is more than 0`, "leave the field empty to keep what is in force");
    limits[f.field] = n;
    lines.push(`${f.label}: ${f.show(limit[f.name])} → ${f.show(n)}${n < used[f.name] ? `, less than the ${f.show(used[f.name])} that are spent` : ""}`);
  }
  if (unfreezes && !lines.length) return { body: lifts ? { patch: true, limits: sameLimit(limit) } : { unfreeze: true }, lines: ["frozen → at work"] };
  if (!lines.length) throw new Refused(400, "nothing would change", "name a limit that is not the one in force");
  if (frozen && (lifts || unfreezes)) lines.push(lifts ? "frozen → at work: a new limit lifts the freeze of a run" : "frozen → at work");
  return { body: { patch: true, limits, unfreeze: (!lifts && unfreezes) || undefined }, lines };
}

export function Budget({ run, model, live }: { run: string; model: RunModel; live: boolean }) {
  const read = async () => {
    const since = model.samples.at(-1), b = await get<RunBudget>(url`/runs/${run}/budget`);
    model.readPool(since, b.budget.used.tokens, b.budget.reserved.tokens);
    return b;
  };
  const { data, error, reload } = useData(file ? async () => file!.budget : read, live ? 2000 : 0, run);
  const [form, setForm] = useState("");
  const p = data?.budget;
  const row = (what: string, pick: (a: Amount) => string) => p && <tr><th scope="row">{what}</th><td>{pick(p.limit) === "0" || pick(p.limit) === "$0" ? "none" : pick(p.limit)}</td><td>{pick(p.used)}</td><td>{pick(p.reserved)}</td><td>{pick(p.kept)}</td></tr>;
  const agents = [...((data?.agents ?? []) as AgentBudget[])].sort((a, b) => b.used.tokens - a.used.tokens);
  return (
    <div class="pad" tabIndex={0} role="region" aria-label="View">
      <Problem text={error} />
      {p && <div class="scroll" tabIndex={0} role="region" aria-label="Budget pool"><table><caption>{p.frozen ? "The pool is frozen: only closing turns are granted." : "The pool of the run"}{p.waiting ? ` ${p.waiting} reservations wait.` : ""}</caption>
        <thead><tr><th scope="col">Of</th><th scope="col">Limit</th><th scope="col">Spent</th><th scope="col">Held</th><th scope="col">Kept for closing turns</th></tr></thead>
        <tbody>{row("tokens", (a) => tokens(a.tokens))}{row("US dollars", (a) => usd(a.nano_usd / 1e9))}{row("tool calls", (a) => String(a.calls))}</tbody></table></div>}
      {!!p?.charged_unknown?.tokens && <p class="quiet">{tokens(p.charged_unknown.tokens)} tokens charged for calls whose usage is unknown: they are in "Spent", and in no row by model.</p>}
      <BudgetChart samples={model.samples} />
      {model.spend.size > 0 && <div class="scroll" tabIndex={0} role="region" aria-label="Spent by model"><table><caption>By model, from the events of the run</caption><thead><tr><th scope="col">Model</th><th scope="col">Calls</th><th scope="col">Tokens</th><th scope="col">Dollars</th></tr></thead>
        <tbody>{[...model.spend].sort((a, b) => b[1].tokens - a[1].tokens).map(([name, s]) => <tr key={name}><th scope="row">{modelName(name)}</th><td>{s.calls}</td><td>{tokens(s.tokens)}</td><td>{usd(s.usd)}</td></tr>)}</tbody></table></div>}
      <AgentChart model={model} />
      {data && <div class="scroll" tabIndex={0} role="region" aria-label="Spent by agent"><table><caption>By agent, the largest first</caption><thead><tr><th scope="col">Agent</th><th scope="col">Limit</th><th scope="col">Spent</th><th scope="col">Dollars</th><th scope="col">Held</th><th scope="col">With those below it</th></tr></thead>
        <tbody>{agents.slice(0, rowsMax).map((a) => <tr key={a.id}><th scope="row">{line(a.name)} <small>{line(a.id)}</small></th><td>{a.limit?.tokens ? tokens(a.limit.tokens) : "the pool"}</td><td>{tokens(a.used.tokens)}</td><td>{usd(a.used.nano_usd / 1e9)}</td><td>{tokens(a.reserved.tokens)}</td>
          <td>{subtreeText(a.subtree)} {live && <button aria-label={`Limit or freeze ${line(a.name)} ${line(a.id)} and those below it`} onClick={() => setForm(a.id)}>Limit or freeze</button>}</td></tr>)}</tbody></table></div>}
      {form && <BudgetForm key={form} run={run} agent={form} close={() => { setForm(""); reload(); }} />}
    </div>
  );
}

function subtreeText(s: Subtree | undefined): string {
  if (!s) return "";
  const parts = figures.filter((f) => s.limit[f.name]).map((f) => `${f.name === "calls" ? s.used.calls : f.show(s.used[f.name]).replace("no limit", "0")} of ${f.show(s.limit[f.name])}${f.name === "tokens" ? " tokens" : f.name === "calls" ? " calls" : ""}`);
  if (s.frozen) parts.push("frozen");
  return parts.join(", ");
}
