// The recorded entries of one log, page by page, and one of them with its bytes.
import { useEffect, useState } from "preact/hooks";
import { get, type RecordedEntry, type RecordedLogs, url } from "./api";
import { clean, line } from "./text";
import { Problem, Rows, Text, go, useData, useKeys } from "./parts";

const pageSize = 200;
const bytesShown = 4096;

const agentOf = (log: string): string => log.slice(log.indexOf(".") + 1).split("@")[0];
const kindsOf = (e: RecordedEntry): string => (e.problem ? "not decoded" : e.facts.map((f) => f.kind).join(", "));

export function Logs({ run, agent, live }: { run: string; agent: string; live: boolean }) {
  const { data: list, error: unlisted } = useData(() => get<RecordedLogs>(url`/runs/${run}/logs`), live ? 5000 : 0, run);
  const logs = list?.logs ?? [];
  const log = logs.find((l) => agentOf(l) === agent) ?? "";
  return (
    <>
      <div class="bar log"><label class="inline">Log of <select value={agent} onChange={(e) => go(`#/run/${run}/logs/${e.currentTarget.value}`)}>{!log && <option value={agent}>{line(agent)}</option>}{logs.map((l) => <option key={l} value={agentOf(l)}>{agentOf(l) === "super" ? "the supervisor (super)" : line(agentOf(l))}</option>)}</select></label>
        {log && <code class="quiet">{line(log)}</code>}</div>
      <Problem text={unlisted} />
      {list && !log && <p class="empty">{line(agent)} has no log.</p>}
      {log && <Entries key={log} run={run} log={log} live={live} />}
    </>
  );
}

function Entries({ run, log, live }: { run: string; log: string; live: boolean }) {
  const [starts, setStarts] = useState([0]); // after which entry each page begins, up to the current one
  const [at, setAt] = useState("");
  const [open, setOpen] = useState<number | null>(null);
  const after = starts[starts.length - 1];
  const path = url`/runs/${run}/logs?log=${log}`;
  const { data, error } = useData(() => get<RecordedLogs>(`${path}&limit=${pageSize}&after=${after}`), live ? 3000 : 0, `${log} ${after}`);
  const rows = data?.entries ?? [];
  const last = rows[rows.length - 1];
  const before = () => starts.length > 1 && setStarts(starts.slice(0, -1));
  const next = () => data?.more && last && setStarts([...starts, last.place]);
  useKeys({ "[": before, "]": next, Escape: () => setOpen(null) });
  return (
    <>
      <div class="bar"><button disabled={starts.length < 2} onClick={before}>Before <kbd>[</kbd></button><button disabled={!data?.more} onClick={next}>After <kbd>]</kbd></button>
        <label class="inline">From number <input type="number" min={1} size={8} onChange={(e) => { const n = Math.floor(Number(e.currentTarget.value)); setStarts(n > 1 ? [0, n - 1] : [0]); }} /></label>
        <span class="quiet" role="status">{last ? `${rows.length} entries, ${rows[0].place} to ${last.place}${data?.more ? ", and more" : ""}` : data ? "no entries" : ""}</span></div>
      <Problem text={error} />
      <div class="head" aria-hidden="true"><span class="num">Number</span><span class="when">Time (UTC)</span><span class="grow">Kind</span><span class="w12 narrow">From</span><span class="num narrow">Epoch</span><span class="num">Bytes</span></div>
      <Rows<RecordedEntry> rows={rows} id={(e) => String(e.place)} label="Log entries" selected={at} select={setAt} open={(e) => setOpen(e.place)} row={(e) => <>
        <span class="num">{e.place}</span><span class="when"><time title={e.ts}>{e.ts.slice(11, 23)}</time></span><span class="grow">{line(kindsOf(e), 120)}</span><span class="w12 narrow">{e.problem ? "" : line(e.from ? agentOf(e.from) : "a client", 40)}</span><span class="num narrow">{e.epoch ?? ""}</span><span class="num">{e.bytes}</span></>} />
      {open !== null && <Entry path={path} place={open} close={() => { setOpen(null); document.querySelector<HTMLElement>(".rows")?.focus(); }} />}
    </>
  );
}

/** Entry shows one entry: what it says, and its bytes. */
function Entry({ path, place, close }: { path: string; place: number; close: () => void }) {
  const { data, error } = useData(() => get<RecordedLogs>(`${path}&after=${place - 1}&limit=1&data=true`), 0, `${path} ${place}`);
  const [shown, setShown] = useState(bytesShown);
  useEffect(() => { setShown(bytesShown); document.querySelector<HTMLElement>(".entry")?.focus(); }, [path, place]);
  const e = data?.entries[0];
  const bytes = e?.data ? atob(e.data) : "";
  return (
    <section class="entry" tabIndex={0} aria-label={"Entry " + place}>
      <div class="bar"><h2>Entry {place}</h2>{e && <small><time>{e.ts}</time>, {e.problem ? "not decoded" : e.from ? `from ${line(e.from)}` : "a command of a client"}{e.epoch ? `, epoch ${e.epoch}` : ""}, {e.bytes} bytes</small>}<span class="buttons"><button onClick={close}>Close <kbd>Esc</kbd></button></span></div>
      <Problem text={error} />
      {e?.problem && <Problem text={"The bytes are no entry that this node can decode: " + e.problem} />}
      {e?.facts.map((f, i) => <div key={i}><h3>{line(f.kind)} <small>{f.bytes} bytes{f.cause ? `, caused by entry ${f.cause} of the sender` : ""}{f.id ? `, id ${line(f.id)}` : ""}</small></h3>{f.problem ? <Problem text={f.problem} /> : <Text text={f.text} />}</div>)}
      {e && <><h3>Bytes</h3><pre class="text hex" tabIndex={0} aria-label="Bytes of the entry">{hexOf(bytes, shown)}</pre>{bytes.length > shown && <button onClick={() => setShown(shown * 8)}>{`Show more: ${bytes.length - shown} bytes are not shown`}</button>}</>}
    </section>
  );
}

/** hexOf writes bytes as hexdump -C does. */
function hexOf(bytes: string, max: number): string {
  const out: string[] = [];
  for (let at = 0; at < Math.min(bytes.length, max); at += 16) {
    const part = bytes.slice(at, Math.min(at + 16, max));
    const hex = [...part].map((c) => c.charCodeAt(0).toString(16).padStart(2, "0")).join(" ");
    out.push(at.toString(16).padStart(6, "0") + "  " + hex.padEnd(49) + part.replace(/[^\x20-\x7e]/g, "."));
  }
  return clean(out.join("\n"), Infinity);
}
