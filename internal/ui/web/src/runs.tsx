// The list of runs, with its filters in the address.
import { useEffect, useState } from "preact/hooks";
import { getPage, type RunInfo } from "./api";
import { age, line, modelName, spendOf, spent } from "./text";
import { Badge, Problem, Rows, go, leaveField, useData, useKeys } from "./parts";
import { StartRun } from "./start";

// Filters are what the address says after "#/runs?": words to search for, and what a run must be.
interface Filters { q: string; state: string; node: string; agent: string; age: string }
const noFilters: Filters = { q: "", state: "", node: "", agent: "", age: "" };
const ages: Record<string, [string, number]> = { "": ["any age", 0], "1h": ["last hour", 3600e3], "24h": ["last 24 hours", 24 * 3600e3], "7d": ["last 7 days", 7 * 24 * 3600e3], "30d": ["last 30 days", 30 * 24 * 3600e3] };
const stateNames = ["live", "queued", "parked", "finished", "interrupted"];

function readFilters(): Filters {
  const given = new URLSearchParams(location.hash.split("?")[1] ?? "");
  const f = { ...noFilters };
  for (const k of Object.keys(f) as (keyof Filters)[]) f[k] = given.get(k) ?? "";
  return f;
}

// keepFilters writes the filters into the address, in place: it is no step back.
function keepFilters(f: Filters): void {
  const set = Object.entries(f).filter(([, v]) => v);
  history.replaceState(null, "", "#/runs" + (set.length ? "?" + new URLSearchParams(set) : ""));
}

const rootOf = (r: RunInfo): string => r.agent ?? "";

function matches(r: RunInfo, f: Filters): boolean {
  const words = f.q.toLowerCase().split(/\s+/).filter(Boolean), most = ages[f.age]?.[1] ?? 0;
  if (f.state && r.state !== f.state || f.node && r.node !== f.node || f.agent && rootOf(r) !== f.agent) return false;
  if (most && Date.now() - Date.parse(r.started) > most) return false;
  const text = `${r.title} ${r.run_id} ${r.result?.stop_reason ?? ""} ${r.model}`.toLowerCase();
  return words.every((w) => text.includes(w));
}

const values = (list: RunInfo[], of: (r: RunInfo) => string | undefined, now: string): string[] => [...new Set([now, ...list.map((r) => of(r) ?? "")])].filter(Boolean).sort();

const pageSize = 1000;
const readRuns = (before = "") => getPage<RunInfo[]>(`/runs?limit=${pageSize}${before && "&cursor=" + encodeURIComponent(before)}`);

export function Runs() {
  const { data, error, reload } = useData(() => readRuns(), 2000, "");
  const [older, setOlder] = useState<{ list: RunInfo[]; more: boolean } | null>(null); // as they were when they were asked for
  const [failed, setFailed] = useState("");
  const [filters, setFilters] = useState(readFilters);
  const [picked, setAt] = useState("");
  const [starting, setStarting] = useState(false);
  const newest = data?.doc ?? [], known = new Set(newest.map((r) => r.run_id));
  const all = [...newest, ...(older?.list ?? []).filter((r) => !known.has(r.run_id))];
  const more = older ? older.more : data?.more ?? false;
  const list = all.filter((r) => matches(r, filters));
  const set = (name: keyof Filters, value: string) => { const f = { ...filters, [name]: value }; setFilters(f); keepFilters(f); };
  const clear = () => { setFilters(noFilters); keepFilters(noFilters); };
  const readOlder = () => {
    if (!more) return;
    readRuns(all.at(-1)?.run_id).then((p) => { setOlder({ list: [...(older?.list ?? []), ...p.doc], more: p.more }); setFailed(""); }, (e: Error) => setFailed(e.message));
  };
  useKeys({ "/": () => document.getElementById("find")?.focus(), n: () => setStarting(true), m: readOlder, c: clear });
  useEffect(() => { const on = () => setFilters(readFilters()); addEventListener("hashchange", on); return () => removeEventListener("hashchange", on); }, []);
  const at = list.some((r) => r.run_id === picked) ? picked : list[0]?.run_id ?? "";
  useEffect(() => setAt(at), [at]); // a run that begins later does not take its place
  const open = (run: string) => go("#/run/" + run);
  const select = (name: keyof Filters, label: string, every: string, options: string[], text = (o: string) => line(o, 40)) => (
    <select aria-label={label} value={filters[name]} onChange={(e) => set(name, e.currentTarget.value)}><option value="">{every}</option>{options.map((o) => <option key={o} value={o}>{text(o)}</option>)}</select>);
  const filtered = Object.values(filters).some(Boolean);
  return (
    <main class="fill">
      <div class="bar">
        <h1>Runs</h1>
        <input id="find" type="search" aria-label="Search titles, ids and stop reasons" placeholder="Search  /" value={filters.q} onInput={(e) => set("q", e.currentTarget.value)} onKeyDown={leaveField(() => at && open(at))} />
        {select("state", "State", "all states", stateNames)}
        {select("node", "Node", "all nodes", values(all, (r) => r.node, filters.node))}
        {select("agent", "Agent", "all agents", values(all, rootOf, filters.agent))}
        {select("age", "Age", "any age", Object.keys(ages).filter(Boolean), (o) => ages[o][0])}
        <button class="primary" onClick={() => setStarting(true)}>Start a run <kbd>n</kbd></button>
      </div>
      <Problem text={error || failed} />
      {data && <p class="quiet count" role="status">{filtered ? `${list.length} of ` : ""}{more ? `the newest ${all.length} runs; there are older ones, which are not shown ` : `${all.length} ${all.length === 1 ? "run" : "runs"} `}
        {more && <button class="link" onClick={readOlder}>show older runs <kbd>m</kbd></button>} {filtered && <button class="link" onClick={clear}>clear the filters <kbd>c</kbd></button>}</p>}
      {data && !list.length && <p class="empty">{all.length ? "No run matches." : "There are no runs yet. Press n to start one."}</p>}
      <Rows rows={list} id={(r) => r.run_id} label="Runs" selected={at} select={setAt} open={(r) => open(r.run_id)} height={44} row={(r) => <>
        <Badge state={r.state === "finished" ? r.result?.stop_reason ?? "finished" : r.state} />
        <span class="grow two"><b>{line(r.title) || r.run_id}</b><small>{r.run_id.slice(0, 10)} · {rootOf(r) && line(rootOf(r), 40) + " · "}{modelName(r.model, 60)}{r.node ? " · " + line(r.node, 30) : ""}</small></span>
        <span class="num">{spent(spendOf(r.result, r.spend))}</span><span class="num narrow">{r.result?.agents?.length ?? ""}<small>{r.result?.agents?.length ? " agents" : ""}</small></span><span class="num narrow">{age(r.started)}</span></>} />
      {starting && <StartRun close={() => { setStarting(false); reload(); }} />}
    </main>
  );
}
