// The form that starts a run, made from the definition of the agent that it begins with.
import { useState } from "preact/hooks";
import { get, post, type AgentInfo } from "./api";
import { json, line, modelName, tokens, took, usd } from "./text";
import { ofMoney, ofTokens } from "./amount";
import { Form, Problem, Text, go, useData, type Field } from "./parts";

export function StartRun({ close }: { close: () => void }) {
  const { data, error } = useData(() => get<AgentInfo[]>("/agents"), 5000, "");
  const [name, setName] = useState("");
  if (!data && !error) return null;
  const a = data?.find((x) => (name ? x.name === name : x.default));
  return <Form title="Start a run" confirm="Start" close={close} note={<Problem text={error && "The agents of the node could not be read: " + error} />} changed={(v) => setName(v.agent ?? "")} fields={fieldsOf(a, data ?? [])}
    submit={async (v, run_id) => {
      const r = await post<{ run_id: string }>("/runs", { ...requestOf(v, a), run_id });
      go("#/run/" + r.run_id);
    }} />;
}

// fieldsOf are the fields of the form: each shows what holds if it stays empty.
function fieldsOf(a: AgentInfo | undefined, all: AgentInfo[]): Field[] {
  const l = a?.limits, first = all.find((x) => x.default)?.name;
  const fields: Field[] = [
    { name: "prompt", label: "Task", type: "area", required: true },
    { name: "agent", label: "Agent", options: ["", ...all.filter((x) => !x.default).map((x) => x.name)], none: first ?? "the node chooses", below: a && <Definition a={a} /> },
    { name: "dir", label: "Directory (below a --root of the node)", empty: "none" },
    { name: "model", label: a?.model ? "Model of the run (this agent has its own)" : "Model", empty: modelName(a?.run_model) || "the node has none" },
    { name: "max_turns", label: "Turns of the root agent", type: "number", empty: String(l?.max_turns ?? ""), min: 1 },
    { name: "max_tokens", label: "Limit of the run in tokens (such as 200k)", figure: ofTokens, empty: String(l?.max_tokens ?? "") },
    { name: "max_budget_usd", label: "Limit of the run in US dollars", figure: ofMoney, empty: l?.max_budget_usd ? "$" + l.max_budget_usd : "no limit" },
    { name: "max_tool_calls", label: "Tool calls of the run", type: "number", empty: l?.max_tool_calls ? String(l.max_tool_calls) : "no limit", min: 1 },
    { name: "minutes", label: "Working time in minutes", type: "number", empty: l ? String(l.timeout_ms / 60000) : "", min: 0 },
    { name: "effort", label: "Effort", options: ["", "low", "medium", "high"], none: a?.effort ? line(a.effort) : "of the model" },
    { name: "permission_mode", label: "Permissions", options: ["", "default", "acceptEdits", "plan", "dontAsk"], none: a?.permission_mode ? line(a.permission_mode) : "of the node" },
  ];
  if (a?.tools?.length) fields.push({ name: "tools", label: "Tools", checks: checksOf(a.tools) });
  else if (a?.tools === null) fields.push({ name: "without", label: "Tools that no agent may use, with spaces between", empty: "all may be used" });
  return fields;
}

// nameOf is the tool of a rule: Bash of Bash(git:*).
const nameOf = (rule: string): string => rule.replace(/\(.*/s, "");

// checksOf has one box for each tool, whose label names all that the agent may do with it: a request takes away whole tools.
function checksOf(rules: string[]): { value: string; label: string }[] {
  return [...new Set(rules.map(nameOf))].map((value) => ({ value, label: [...new Set(rules.filter((r) => nameOf(r) === value))].join(", ") }));
}

// requestOf is the request of a filled form: what stays empty is left out, so that the defaults hold.
function requestOf(v: Record<string, string>, a: AgentInfo | undefined): Record<string, unknown> {
  const body: Record<string, unknown> = {};
  for (const k of ["prompt", "agent", "dir", "model", "effort", "permission_mode"]) if (v[k]) body[k] = v[k];
  for (const k of ["max_turns", "max_tokens", "max_budget_usd", "max_tool_calls"]) if (v[k]) body[k] = Number(v[k]);
  if (v.minutes) body.timeout_ms = Math.round(Number(v.minutes) * 60000);
  const kept = new Set((v.tools ?? "").split("\n"));
  const without = a?.tools?.length ? a.tools.map(nameOf).filter((t) => !kept.has(t)) : (v.without ?? "").split(/[\s,]+/).filter(Boolean);
  if (without.length) body.disallowed_tools = [...new Set(without)];
  return body;
}

// Definition is what the definition of an agent says and the form does not ask for.
function Definition({ a }: { a: AgentInfo }) {
  const l = a.limits, own = [l.agent_tokens && tokens(l.agent_tokens) + " tokens", l.agent_usd && usd(l.agent_usd), l.agent_share && Math.round(l.agent_share * 100) + "% of the run's limits"].filter(Boolean);
  const rows: [string, string][] = [
    ["Model", modelName(a.model)], ["Its own limit", own.join(", ")], ["Working time", took(l.timeout_ms)],
    ["Tools", a.tools ? a.tools.map((t) => line(t, 80)).join(", ") || "none" : "all that the run has"], ["Not", (a.disallowed_tools ?? []).map((t) => line(t, 80)).join(", ")],
    ["Delegates to", a.delegates ? a.delegates.map((d) => line(d, 80)).join(", ") || "nobody" : "any agent"],
    ["Temperature", a.temperature === undefined ? "" : String(a.temperature)], ["Constraints", (a.constraints ?? []).map((c) => line(c, 200)).join(" · ")], ["Criteria", (a.criteria ?? []).map((c) => line(c, 200)).join(" · ")], ["Fails if", (a.fail_if ?? []).map((c) => line(c, 200)).join(" · ")],
  ];
  return (
    <div class="definition" aria-live="polite">
      <p>{line(a.description, 600)}</p>
      <dl>{rows.filter(([, v]) => v).map(([k, v]) => <div key={k}><dt>{k}</dt><dd>{v}</dd></div>)}</dl>
      {a.output_schema && <details><summary>Its answer satisfies a JSON Schema{Object.keys(a.output_schema.properties ?? {}).length ? ": " + Object.keys(a.output_schema.properties).map((p) => line(p, 40)).join(", ") : ""}</summary><Text text={json(a.output_schema)} /></details>}
    </div>
  );
}
