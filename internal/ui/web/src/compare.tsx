// Two runs side by side, with their first difference; and the form that forks a run at a turn.
import { get, post, type ComparedRun, type Message, type RunComparison, type RunInfo, url } from "./api";
import { ofMoney, ofTokens } from "./amount";
import { line, modelName, tokens, usd } from "./text";
import { Badge, Diff, Form, Problem, Text, go, useData } from "./parts";

export function Compare({ a, b }: { a: string; b: string }) {
  const { data, error } = useData(() => get<RunComparison>(url`/runs/${a}/comparison?with=${b}`), 0, `${a} ${b}`);
  const first = data?.first_difference;
  const at = data?.steps.findIndex((s) => s.differs) ?? -1;
  const row = (what: string, value: (r: ComparedRun) => unknown) => data && <tr class={String(value(data.a)) === String(value(data.b)) ? "" : "differs"}><th scope="row">{what}</th><td>{line(value(data.a), 100)}</td><td>{line(value(data.b), 100)}</td></tr>;
  return (
    <main>
      <h1>Compare two runs</h1>
      <Problem text={error} />
      {!data && !error && <p class="empty">Both runs are replayed.</p>}
      {data && <>
        <div class="scroll" tabIndex={0} role="region" aria-label="Both runs"><table><thead><tr><th scope="col">Run</th><th scope="col"><a href={"#/run/" + data.a.run_id}>{data.a.run_id}</a></th><th scope="col"><a href={"#/run/" + data.b.run_id}>{data.b.run_id}</a></th></tr></thead>
          <tbody>{(data.a.fork || data.b.fork) && row("a fork of", (r) => r.fork ?? "")}{row("ended", (r) => r.stop_reason || "not yet")}{row("model", (r) => modelName(r.model))}{row("agents", (r) => r.agents)}{row("turns", (r) => r.num_turns)}{row("tokens", (r) => tokens(r.tokens))}{row("dollars", (r) => (r.cost_estimated ? "~" : "") + usd(r.total_cost_usd))}</tbody></table></div>
        <div role="status"><h2>{first ? `First difference: ${line(first.agent)}, turn ${first.turn}, ${line(first.kind)}${first.call ? " " + line(first.call) : ""}` : "No difference"}</h2></div>
        {data.steps.map((s, i) => (
          <section key={i} class={"pair" + (i === at ? " first" : s.differs ? " differs" : "")} aria-label={`Turn ${s.turn}, ${line(s.kind)}`}>
            <h3>turn {s.turn} <Badge state={s.kind} /> {line(s.call)}{i === at ? " — the first difference" : s.differs ? " — differs" : ""}</h3>
            {s.differs ? <div class="sides"><Side name={data.a.run_id} text={s.a} /><Side name={data.b.run_id} text={s.b} /></div> : <p class="quiet">{line(s.a, 200)}</p>}
          </section>
        ))}
        {data.result_diff && <><h2>Answers</h2><Diff text={data.result_diff} /></>}
      </>}
    </main>
  );
}

const Side = ({ name, text }: { name: string; text: string }) => <div><small>{name.slice(0, 10)}…{name.slice(-4)}</small>{text ? <Text text={text} /> : <p class="quiet">nothing</p>}</div>;

/** CompareForm asks which run to compare with: a fork is compared with its origin unless another one is named. */
export function CompareForm({ run, close }: { run: string; close: () => void }) {
  const { data } = useData(() => get<RunInfo>(url`/runs/${run}?describe=true`), 0, run);
  if (!data) return null;
  const origin = data.description?.fork?.split("@")[0];
  return <Form title="Compare with another run" confirm="Compare" close={close} fields={[{ name: "other", label: "Run id, the beginning of one, or last", value: origin, required: true }]}
    submit={async (v) => { const other = await get<RunInfo>(url`/runs/${v.other}`); go(`#/compare/${other.run_id}/${run}`); }} />;
}

/** turnsOf returns the turn of each message of the assistant, 0 of imported ones. Ids of calls begin with their turn. */
export function turnsOf(messages: Message[], last: number): number[] {
  const out: number[] = new Array(messages.length).fill(0);
  let next = last + 1;
  for (let i = messages.length - 1; i >= 0 && next > 1; i--) {
    if (messages[i].role !== "assistant") continue;
    const named = parseInt(messages[i].calls?.[0]?.id ?? "", 10);
    out[i] = next = named > 0 && named < next ? named : next - 1;
  }
  return out;
}

/** ForkForm begins a run as another one was after a turn of an agent, with what shall be different. */
export function ForkForm({ run, agent, turn, close }: { run: string; agent: string; turn: number; close: () => void }) {
  const { data } = useData(() => get<RunInfo>(url`/runs/${run}?describe=true`), 0, run);
  if (!data) return null;
  const dir = data.description?.workspace;
  return <Form title={`Fork after turn ${turn} of ${agent}`} confirm="Fork" close={close}
    note={<p class="quiet">A new run begins as this one was at that point, with all its agents. This run goes on unchanged. Empty fields stay as they are.{dir && <> It works in <code>{line(dir, 300)}</code>, and a fork shares no directory with it: name a copy, or let the command make one: <code>troupe run --fork {run}@{agent}:{turn}</code></>}</p>}
    fields={[
      ...(dir ? [{ name: "dir", label: "A copy of the directory (below a --root of the node)", required: true }] : []),
      { name: "prompt", label: "Message before the next turn", type: "area" },
      { name: "system", label: "Another system prompt of this agent", type: "area" },
      { name: "model", label: `Model (now ${modelName(data.model)})` },
      { name: "max_tokens", label: "Limit in tokens (such as 200k)", figure: ofTokens }, { name: "max_budget_usd", label: "Limit in US dollars", figure: ofMoney },
    ]}
    submit={async (v, run_id) => {
      const body: Record<string, unknown> = { run_id, fork: `${run}@${agent}:${turn}` };
      for (const k of ["dir", "prompt", "model"]) if (v[k]) body[k] = v[k];
      for (const k of ["max_tokens", "max_budget_usd"]) if (v[k]) body[k] = Number(v[k]);
      if (v.system) body.layers = [{ name: "system", text: v.system }];
      const fork = await post<{ run_id: string }>("/runs", body);
      go("#/run/" + fork.run_id);
    }} />;
}
