// The cluster: nodes, pools, leases, streams, throttles, and the drain of a node.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Refused, get, post, type NodeInfo, url } from "./api";
import { age, line, took } from "./text";
import { Badge, Form, Problem, useData, useKeys } from "./parts";

interface Pool { name: string; shards: number; streams: number; held: number; nodes: string[] }
interface Lease { pool: string; shard: number; node: string; epoch: number; lapsed?: boolean }
interface Stream { name: string; kind: string; pool: string; messages: number; bytes: number; bytes_max: number; leader?: string; replicas?: number; behind?: string[]; error?: string }
interface Throttle { name: string; provider?: string; model?: string; closed_ms: number; why?: string; breaker?: string; window: number; in_flight: number; waiting: number; requests_per_minute?: number; tokens_per_minute?: number }
interface ClusterInfo { nodes: NodeInfo[]; lease_ms: number; pools: Pool[]; leases: Lease[]; streams: Stream[]; throttles: Throttle[]; refused?: string }

const leasesMax = 1024; // rows of the table of leases

/** read asks for the cluster; owners see its nodes only. */
async function read(): Promise<ClusterInfo> {
  try {
    return await get<ClusterInfo>("/cluster");
  } catch (e) {
    if (!(e instanceof Refused) || e.code !== 403) throw e;
    return { nodes: await get<NodeInfo[]>("/nodes"), lease_ms: 0, pools: [], leases: [], streams: [], throttles: [], refused: e.message };
  }
}

/** ranges writes numbers as 0–3, 7. */
export function ranges(list: number[]): string {
  const out: string[] = [];
  const all = [...list].sort((a, b) => a - b);
  for (let i = 0; i < all.length;) {
    let j = i;
    while (all[j + 1] === all[j] + 1) j++;
    out.push(i === j ? String(all[i]) : `${all[i]}–${all[j]}`);
    i = j + 1;
  }
  return out.join(", ");
}

function bytes(n: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  for (; n >= 1024 && i < units.length - 1; i++) n /= 1024;
  return (i && n < 10 ? n.toFixed(1) : Math.round(n)) + " " + units[i];
}

const held = (n: NodeInfo): number => Object.values(n.pools ?? {}).reduce((s, l) => s + l.length, 0);

const holds = (n: NodeInfo): string => n.state === "alone" ? "all" : Object.entries(n.pools ?? {}).map(([pool, l]) => `${pool}: ${l.length}${l.length ? ` (${ranges(l)})` : ""}`).join("; ");

export function Cluster() {
  const { data, error, reload } = useData(read, 3000, "");
  const [at, setAt] = useState(0);
  const [asked, ask] = useState<NodeInfo | null>(null);
  const [said, say] = useState("");
  const nodes = data?.nodes ?? [], current = nodes[Math.min(at, nodes.length - 1)];
  const may = !!data && !data.refused;
  useKeys({ j: () => setAt(Math.max(0, Math.min(at + 1, nodes.length - 1))), k: () => setAt(Math.max(0, at - 1)), d: () => { if (may && current) current.state === "alone" ? say(`${current.name} is not drained: it has its logs alone, so no other node can take its shards`) : ask(current); } });
  return (
    <main>
      <h1>Nodes</h1>
      <Problem text={error} /><p role="status" class="quiet">{line(said, 500)}</p>
      {data?.refused && <p class="quiet">Only the nodes are shown: {line(data.refused)}</p>}
      <Table name="Nodes" caption={data?.lease_ms ? `A lease lasts ${took(data.lease_ms)} after its renewal.` : ""} head={["Node", "State", "Shards", "Actors", "Busy", "Passivated", "Runs", "Version", "Age", ""]}>
        {nodes.map((n, i) => <tr key={n.id} class={i === at ? "current" : ""}><th scope="row">{line(n.name)}<small> {line(n.host)}</small></th><td><Badge state={n.state} /></td><td class="wrap">{line(holds(n), 600)}</td><td>{n.live}</td><td>{n.busy}</td><td>{n.resting}</td><td>{n.live_runs ?? 0}{n.queued_runs ? ` + ${n.queued_runs} queued` : ""}</td><td>{line(n.version, 60)}</td><td>{age(n.started)}</td>
          <td>{may && n.state !== "alone" && <button aria-label={`${n.state === "leaving" ? "Resume" : "Drain"} ${line(n.name)}`} onClick={() => { setAt(i); ask(n); }}>{n.state === "leaving" ? "Resume" : "Drain"}{i === at && <> <kbd>d</kbd></>}</button>}</td></tr>)}
      </Table>
      {nodes.map((n) => n.logs && <Problem key={n.id} text={`${n.name} cannot write its logs: ${n.logs.why}: ${n.logs.remedy}`} />)}
      {data && !data.refused && <Rest data={data} />}
      {asked && <DrainForm node={asked} nodes={nodes} close={() => ask(null)} done={(text) => { say(text); reload(); }} />}
    </main>
  );
}

function Table({ name, caption, head, children }: { name: string; caption: string; head: string[]; children: ComponentChildren }) {
  return <div class="scroll wide" tabIndex={0} role="region" aria-label={name}><table><caption>{caption}</caption><thead><tr>{head.map((h) => h ? <th key={h} scope="col">{h}</th> : <td key="" />)}</tr></thead><tbody>{children}</tbody></table></div>;
}

function Rest({ data }: { data: ClusterInfo }) {
  const names = new Map(data.nodes.map((n) => [n.id, n.name]));
  const free = data.pools.filter((p) => p.held < p.shards);
  return (
    <>
      {free.map((p) => <Problem key={p.name} text={`${p.shards - p.held} of ${p.shards} shards of pool ${p.name} have no node: their runs do not proceed.`} />)}
      {data.pools.length > 0 && <><h2>Pools</h2><Table name="Pools" caption="" head={["Pool", "Shards", "Held", "Streams", "Nodes"]}>
        {data.pools.map((p) => <tr key={p.name}><th scope="row">{line(p.name)}</th><td>{p.shards}</td><td>{p.held}</td><td>{p.streams}</td><td class="wrap">{line(p.nodes.join(", "), 400)}</td></tr>)}</Table></>}
      {data.leases.length > 0 && <details class="leases"><summary>{data.leases.length} leases</summary><Table name="Leases" caption="The epoch is the fencing token: an entry of an older one has no effect." head={["Shard", "Holder", "Epoch", "State"]}>
        {data.leases.slice(0, leasesMax).map((l) => <tr key={l.pool + l.shard}><th scope="row">{line(l.pool)}.{l.shard}</th><td>{line(names.get(l.node) ?? l.node)}</td><td>{l.epoch}</td><td>{l.lapsed ? "not renewed" : "held"}</td></tr>)}</Table>
        {data.leases.length > leasesMax && <p class="quiet">{data.leases.length - leasesMax} more are not shown.</p>}</details>}
      <h2>Streams of the logs</h2>
      <Table name="Streams" caption="" head={["Stream", "Pool", "Messages", "Size", "Limit", "Leader", "Replicas"]}>
        {data.streams.map((s) => s.error ? <tr key={s.name}><th scope="row">{line(s.name)}</th><td>{line(s.pool)}</td><td class="wrap" colSpan={5}><Problem text={"did not answer: " + s.error} /></td></tr> : <tr key={s.name}><th scope="row">{line(s.name)}</th><td>{line(s.pool) || "all"}</td><td>{s.kind === "files" ? "in files" : s.messages}</td><td>{bytes(s.bytes)}</td><td>{s.bytes_max ? `${bytes(s.bytes_max)}, ${Math.round((100 * s.bytes) / s.bytes_max)} % used` : "none"}</td><td>{line(s.leader) || "no cluster"}</td><td>{s.replicas ?? 1}{s.behind?.length ? `, behind: ${line(s.behind.join(", "))}` : ""}</td></tr>)}</Table>
      <h2>Throttles</h2>
      {data.throttles.length === 0 ? <p class="quiet">The node that answered has no throttle in use.</p> :
        <Table name="Throttles" caption="As the node that answered has them; calls are those of that node." head={["Provider", "Model", "State", "In flight", "Waiting", "A minute"]}>
          {data.throttles.map((t) => <tr key={t.name}><th scope="row">{line(t.provider) || "reported by another node"}</th><td>{line(t.model) || line(t.name, 12)}</td><td>{t.closed_ms ? `closed for ${took(t.closed_ms)}: ${line((t.why ?? "").replace(/_/g, " "))}` : t.breaker && t.breaker !== "closed" ? "breaker " + line(t.breaker.replace(/_/g, " ")) : "open"}</td><td>{t.in_flight} of {t.window}</td><td>{t.waiting}</td><td>{[t.requests_per_minute && t.requests_per_minute + " requests", t.tokens_per_minute && t.tokens_per_minute + " tokens"].filter(Boolean).join(", ") || "no rate known"}</td></tr>)}</Table>}
    </>
  );
}

/** DrainForm shows what a drain changes before it is asked for. */
function DrainForm({ node, nodes, close, done }: { node: NodeInfo; nodes: NodeInfo[]; close: () => void; done: (text: string) => void }) {
  const undo = node.state === "leaving";
  const same = nodes.filter((n) => n.name === node.name), others = nodes.filter((n) => n.name !== node.name && n.state === "live");
  const unserved = Object.keys(node.pools ?? {}).filter((p) => !others.some((n) => n.pools && p in n.pools));
  const shards = same.reduce((s, n) => s + held(n), 0), busy = same.reduce((s, n) => s + n.busy, 0);
  return <Form title={`${undo ? "Resume" : "Drain"} ${line(node.name)}`} danger={!undo} confirm={undo ? "Let it acquire shards" : "Drain"} close={close} fields={[]}
    note={undo ? <p>{line(node.name)} acquires shards again: now {shards} → a share of those of its pools.</p> : <>
      <p>{same.length > 1 ? `${same.length} nodes of this name hand` : "The node hands"} off {shards} shards → 0, each once its calls have ended ({busy} are under way), and {same.length > 1 ? "acquire" : "acquires"} no more, also after a restart, until resumed.</p>
      {unserved.map((p) => <Problem key={p} text={`No other node serves pool ${p}: its shards stay here until another node does, or until this one is stopped.`} />)}</>}
    submit={async () => {
      const list = await post<(NodeInfo & { warning?: string })[]>(url`/nodes/${node.name}/drain`, { undo });
      done(`${node.name} ${undo ? "acquires shards again" : "hands off its shards"}${list.map((n) => n.warning ? "; " + n.warning : "").join("")}`);
    }} />;
}
