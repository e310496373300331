// The timeline of a run: what each agent did when, by the time of the logs.
import uPlot from "uplot";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get, type Span, url } from "./api";
import { color, usePlot } from "./charts";
import { line, took } from "./text";
import { Problem, useData, useKeys } from "./parts";
import { file } from "./file";

/** Look is how a kind of span is drawn: its colour, and the direction of its hatch. */
interface Look { name: string; what: string; color: string; hatch: "" | "up" | "down" | "flat" | "dots" | "tall" }

// Later looks are drawn over earlier ones: a call that asks a person is a wait for that person.
const looks: Look[] = [
  { name: "turn", what: "rest of a turn", color: "--line", hatch: "" },
  { name: "child", what: "waits for a child", color: "--quiet", hatch: "dots" },
  { name: "budget", what: "waits for budget", color: "--warn", hatch: "flat" },
  { name: "throttle", what: "waits for a throttle", color: "--warn", hatch: "tall" },
  { name: "retry", what: "waits to try again", color: "--bad", hatch: "down" },
  { name: "tool", what: "tool", color: "--good", hatch: "" },
  { name: "person", what: "waits for a person", color: "--warn", hatch: "up" },
  { name: "model", what: "model", color: "--accent", hatch: "" },
  { name: "veto", what: "failed or vetoed", color: "--bad", hatch: "" },
];

const lookOf = (s: Span): string => s.kind !== "waiting" ? s.kind : ["budget", "throttle", "retry", "person"].includes(s.name) ? s.name : "child";

const describe = (s: Span): string => `${line(s.agent_name, 40)} (${line(s.agent, 40)}): ${s.kind === "waiting" ? "waits for " + line(s.name === "retry" ? "another attempt" : s.name, 60) : s.kind === "turn" ? "turn" : line(s.kind + " " + s.name, 60)}${s.turn ? `, turn ${s.turn}` : ""}, ${took(s.end_ms - s.start_ms)} from ${took(s.start_ms)} to ${took(s.end_ms)}${s.open ? ", goes on" : ""}${s.error ? ", failed" : ""}`;

const keyOf = (s: Span): string => [s.agent, s.kind, s.name, s.start_ms].join(" ");

const rowHeight = 22;
const perPage = 40; // agents

export function Timeline({ run, live, open }: { run: string; live: boolean; open: (agent: string) => void }) {
  const { data, error } = useData(file ? async () => file!.spans : () => get<Span[]>(url`/runs/${run}/timeline`), live ? 3000 : 0, run);
  const spans = data ?? [];
  const [page, setPage] = useState(0);
  const [picked, pick] = useState(""); // key of the span under the cursor, or chosen by keys
  const { agents, place } = useMemo(() => arrange(spans), [data]);
  const pages = Math.max(1, Math.ceil(agents.length / perPage)), from = Math.min(page, pages - 1) * perPage;
  const shown = agents.slice(from, from + perPage);
  const end = spans.reduce((m, s) => Math.max(m, s.end_ms), 1) / 1000;
  const now = useRef({ spans, place, from, end, picked });
  now.current = { spans, place, from, end, picked };
  const zoomed = useRef<{ min: number; max: number } | null>(null); // by the user: a live run does not change it
  const { box, plot } = usePlot((el) => {
    if (!shown.length) return null;
    const keep = zoomed.current;
    const u = new uPlot({
      width: el.clientWidth, height: shown.length * rowHeight + 60, legend: { show: false }, cursor: { y: false, points: { show: false } },
      scales: { x: { time: false }, y: { range: [0, shown.length], dir: -1 as const } },
      axes: [{ stroke: color("--quiet"), grid: { stroke: color("--line") }, values: (_, v) => v.map((n) => took(n * 1000)) },
        { stroke: color("--text"), grid: { show: false }, size: Math.min(agents.length < 2 ? 150 : 210, el.clientWidth / 3), splits: () => shown.map((_, i) => i + 0.5), values: () => shown.map((a) => el.clientWidth < 600 || agents.length < 2 ? line(a.name, el.clientWidth < 600 ? 12 : 20) : line(a.name, 16) + " " + line(a.id, 14)) }],
      series: [{}, { stroke: "transparent", points: { show: false } }],
      hooks: {
        draw: [(u) => draw(u, now.current)],
        setScale: [(u, name) => {
          const { min, max } = u.scales.x;
          if (name !== "x" || min == null || max == null) return;
          zoomed.current = min > 0.0005 || max < now.current.end - 0.0005 ? { min, max } : null;
          el.dataset.zoom = zoomed.current ? `${min.toFixed(3)} ${max.toFixed(3)}` : "";
        }],
        setCursor: [(u) => { const s = spanAt(u, now.current); if (s) pick(keyOf(s)); }],
      },
    }, [[0, end], [0, 0]], el);
    if (keep) u.setScale("x", keep);
    return u;
  }, [shown.length, from, run]);
  useEffect(() => {
    const u = plot.current;
    u?.setData([[0, end], [0, 0]], !zoomed.current);
    if (zoomed.current) u?.redraw(false);
  }, [data]);
  useEffect(() => plot.current?.redraw(false), [picked]);
  const zoom = (by: number, shift = 0) => {
    const u = plot.current;
    if (!u) return;
    const min = u.scales.x.min!, max = u.scales.x.max!, mid = (min + max) / 2 + shift * (max - min), half = ((max - min) / 2) * by;
    u.setScale("x", by === Infinity ? { min: 0, max: end } : { min: Math.max(0, mid - half), max: Math.min(end, mid + half) });
  };
  const toPage = (by: number) => setPage(Math.max(0, Math.min(page + by, pages - 1)));
  const { current, step } = useChoice({ spans, agents, place, picked, pick, first: shown[0]?.id, showRow: (at) => setPage(Math.floor(at / perPage)) },
    { "+": () => zoom(0.5), "-": () => zoom(2), "0": () => zoom(Infinity), ArrowLeft: () => zoom(1, -0.25), ArrowRight: () => zoom(1, 0.25), "]": () => toPage(1), "[": () => toPage(-1) }, open);
  return (
    <div class="pad" tabIndex={0} role="region" aria-label="View">
      <Problem text={error} />
      <div class="bar"><span class="legend">{[...looks].reverse().map((l) => <span key={l.name}><i class={`swatch k${l.color} h-${l.hatch || "none"}`} /> {l.what}</span>)}</span>
        <span class="buttons"><button onClick={() => zoom(0.5)}>Zoom in <kbd>+</kbd></button><button onClick={() => zoom(2)}>Zoom out <kbd>-</kbd></button><button onClick={() => zoom(Infinity)}>All <kbd>0</kbd></button><button onClick={() => step(-1)}>Span before <kbd>,</kbd></button><button onClick={() => step(1)}>Next span <kbd>.</kbd></button>
          {pages > 1 && <><button onClick={() => toPage(-1)}>Agents before <kbd>[</kbd></button><button onClick={() => toPage(1)}>Next agents <kbd>]</kbd></button> {from + 1}–{from + shown.length} of {agents.length}</>}</span></div>
      <p class="span" role="status">{current ? describe(current) : "No span is chosen: . and , choose one, j and k another agent, o opens its transcript."}</p>
      <div ref={box} class="plot" role="img" aria-label="What each agent did when, by the time of the logs; the list below has the longest spans" />
      <details><summary>The longest spans as a list</summary><ul class="events">{[...spans].filter((s) => s.kind !== "turn").sort((a, b) => b.end_ms - b.start_ms - a.end_ms + a.start_ms).slice(0, 50).map((s, i) => <li key={i}><button class="link" onClick={() => open(s.agent)}>{line(s.agent_name)} {s.agent}</button> {s.kind === "waiting" ? "waits for" : s.kind} {line(s.name, 60)} {took(s.end_ms - s.start_ms)}, at {took(s.start_ms)}</li>)}</ul></details>
    </div>
  );
}

interface Choice { spans: Span[]; agents: { id: string }[]; place: Map<string, number>; picked: string; pick: (key: string) => void; first: string | undefined; showRow: (at: number) => void }

/** useChoice returns the chosen span, and what chooses the next one of its agent. Its keys are those of the view, and those that choose a span. */
function useChoice(c: Choice, keys: Record<string, () => void>, open: (agent: string) => void): { current: Span | undefined; step: (by: number) => void } {
  const current = c.spans.find((s) => keyOf(s) === c.picked);
  const spansOf = (agent: string | undefined): Span[] => c.spans.filter((s) => s.kind !== "turn" && s.agent === agent);
  const step = (by: number) => {
    const list = spansOf(current?.agent ?? c.first);
    const next = list[Math.max(0, Math.min(list.length - 1, (current ? list.indexOf(current) : by > 0 ? -1 : list.length) + by))];
    if (next) c.pick(keyOf(next));
  };
  const row = (by: number) => {
    const at = Math.max(0, Math.min(c.agents.length - 1, current ? c.place.get(current.agent)! + by : 0)), list = spansOf(c.agents[at]?.id);
    const next = current ? list.reduce<Span | undefined>((best, s) => !best || Math.abs(s.start_ms - current.start_ms) < Math.abs(best.start_ms - current.start_ms) ? s : best, undefined) : list[0];
    if (next) { c.pick(keyOf(next)); c.showRow(at); }
  };
  useKeys({ ...keys, ".": () => step(1), ",": () => step(-1), j: () => row(1), k: () => row(-1), o: () => current && open(current.agent) });
  return { current, step };
}

function arrange(spans: Span[]): { agents: { id: string; name: string }[]; place: Map<string, number> } {
  const agents: { id: string; name: string }[] = [], place = new Map<string, number>();
  for (const s of spans) if (!place.has(s.agent)) { place.set(s.agent, agents.length); agents.push({ id: s.agent, name: s.agent_name }); }
  return { agents, place };
}

interface Drawn { spans: Span[]; place: Map<string, number>; from: number; end: number; picked: string }

/** spanAt is the span under the cursor, the shortest if there are several. */
function spanAt(u: uPlot, d: Drawn): Span | undefined {
  const { left, top } = u.cursor;
  if (left == null || top == null || left < 0 || top < 0) return undefined;
  const row = Math.floor(u.posToVal(top, "y")) + d.from, at = u.posToVal(left, "x") * 1000, near = (u.posToVal(left + 2, "x") - u.posToVal(left, "x")) * 1000;
  let best: Span | undefined;
  for (const s of d.spans) if (d.place.get(s.agent) === row && s.start_ms - near <= at && at <= s.end_ms + near && (!best || s.end_ms - s.start_ms < best.end_ms - best.start_ms)) best = s;
  return best;
}

/** hatched is a pattern of lines in a colour, so that kinds differ without colours, too. */
function hatched(c: CanvasRenderingContext2D, look: Look, ratio: number): string | CanvasPattern {
  const ink = color(look.color);
  if (!look.hatch) return ink;
  const tile = document.createElement("canvas"), n = Math.round(6 * ratio);
  tile.width = tile.height = n;
  const t = tile.getContext("2d")!;
  t.strokeStyle = t.fillStyle = ink;
  t.lineWidth = 1.5 * ratio;
  t.beginPath();
  if (look.hatch === "up") { t.moveTo(-n / 2, n / 2); t.lineTo(n / 2, -n / 2); t.moveTo(0, n); t.lineTo(n, 0); t.moveTo(n / 2, n * 1.5); t.lineTo(n * 1.5, n / 2); }
  if (look.hatch === "down") { t.moveTo(-n / 2, n / 2); t.lineTo(n / 2, n * 1.5); t.moveTo(0, 0); t.lineTo(n, n); t.moveTo(n / 2, -n / 2); t.lineTo(n * 1.5, n / 2); }
  if (look.hatch === "flat") { t.moveTo(0, n / 2); t.lineTo(n, n / 2); }
  if (look.hatch === "tall") { t.moveTo(n / 2, 0); t.lineTo(n / 2, n); }
  if (look.hatch === "dots") t.rect(n / 3, n / 3, n / 3, n / 3);
  t.stroke();
  return c.createPattern(tile, "repeat") ?? ink;
}

function draw(u: uPlot, d: Drawn): void {
  const c = u.ctx, ratio = devicePixelRatio, left = u.bbox.left, right = left + u.bbox.width;
  const first = u.scales.x.min! * 1000, last = u.scales.x.max! * 1000;
  c.save();
  c.beginPath();
  c.rect(left, u.bbox.top, u.bbox.width, u.bbox.height);
  c.clip();
  for (const look of looks) {
    const fill = hatched(c, look, ratio), inset = (look.name === "turn" ? 9 : 4) * ratio;
    for (const s of d.spans) {
      const at = d.place.get(s.agent)! - d.from;
      if (lookOf(s) !== look.name || at < 0 || at >= perPage || s.end_ms < first || s.start_ms > last) continue;
      const x0 = Math.max(left, u.valToPos(s.start_ms / 1000, "x", true)), x1 = Math.min(right, u.valToPos(s.end_ms / 1000, "x", true));
      const y = u.valToPos(at, "y", true), w = Math.max(ratio, x1 - x0), h = rowHeight * ratio - 2 * inset;
      if (look.hatch) { c.fillStyle = color("--bg"); c.fillRect(x0, y + inset, w, h); } // what is below shows through
      c.fillStyle = s.error ? color("--bad") : fill;
      c.fillRect(x0, y + inset, w, h);
      if (keyOf(s) !== d.picked) continue;
      c.strokeStyle = color("--text");
      c.lineWidth = 2 * ratio;
      c.strokeRect(x0 - ratio, y + inset - ratio, w + 2 * ratio, h + 2 * ratio);
    }
  }
  c.restore();
}
