// Charts, drawn by uPlot.
import uPlot from "uplot";
import { useEffect, useRef, useState } from "preact/hooks";
import { get, type Span } from "./api";
import { line, took, tokens } from "./text";
import { Problem, useData, useKeys } from "./parts";
import { file } from "./file";

const color = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function usePlot(make: (box: HTMLDivElement) => uPlot | null, again: unknown[]): { box: { current: HTMLDivElement | null }; plot: { current: uPlot | null } } {
  const box = useRef<HTMLDivElement>(null), plot = useRef<uPlot | null>(null);
  useEffect(() => {
    const el = box.current!;
    plot.current = make(el);
    const watch = new ResizeObserver(() => plot.current?.setSize({ width: el.clientWidth, height: plot.current.height }));
    watch.observe(el);
    return () => { watch.disconnect(); plot.current?.destroy(); plot.current = null; };
  }, again);
  return { box, plot };
}

export function BudgetChart({ samples }: { samples: [number, number, number, number][] }) {
  const data = (): uPlot.AlignedData => [samples.map((s) => s[0]), samples.map((s) => s[1]), samples.map((s) => s[1] + s[2]), samples.map((s) => s[3] || null)];
  const { box, plot } = usePlot((el) => new uPlot({
    width: el.clientWidth, height: 220, legend: { show: true },
    scales: { x: { time: true } },
    axes: [{ stroke: color("--quiet"), grid: { stroke: color("--line") } }, { stroke: color("--quiet"), grid: { stroke: color("--line") }, size: 60, values: (_, v) => v.map((n) => tokens(n)) }],
    series: [{}, { label: "spent", stroke: color("--accent"), width: 2, paths: uPlot.paths.stepped!({ align: 1 }) }, { label: "with held", stroke: color("--warn"), width: 1, paths: uPlot.paths.stepped!({ align: 1 }) }, { label: "limit", stroke: color("--bad"), width: 1, dash: [4, 4], paths: uPlot.paths.stepped!({ align: 1 }) }],
  }, data(), el), []);
  useEffect(() => { plot.current?.setData(data()); }, [samples.length, samples[samples.length - 1]?.[0]]);
  return <figure><figcaption>Tokens over time</figcaption><div ref={box} class="plot" role="img" aria-label="Tokens spent and held over time; the table has the figures" /></figure>;
}

const kinds: [string, string][] = [["model", "--accent"], ["tool", "--good"], ["waiting", "--warn"], ["veto", "--bad"], ["turn", "--line"]];
const rowHeight = 22;

export function Timeline({ run, live, open }: { run: string; live: boolean; open: (agent: string) => void }) {
  const { data, error } = useData(file ? async () => file!.spans : () => get<Span[]>(`/runs/${run}/timeline`), live ? 3000 : 0, run);
  const spans = data ?? [];
  const [page, setPage] = useState(0);
  const agents: { id: string; name: string }[] = [];
  const place = new Map<string, number>();
  for (const s of spans) if (!place.has(s.agent)) { place.set(s.agent, agents.length); agents.push({ id: s.agent, name: s.agent_name }); }
  const perPage = 40, pages = Math.max(1, Math.ceil(agents.length / perPage)), from = Math.min(page, pages - 1) * perPage;
  const shown = agents.slice(from, from + perPage);
  const end = spans.reduce((m, s) => Math.max(m, s.end_ms), 1) / 1000;
  const now = useRef({ spans, place, from });
  now.current = { spans, place, from };
  const { box, plot } = usePlot((el) => shown.length ? new uPlot({
    width: el.clientWidth, height: shown.length * rowHeight + 60, legend: { show: false }, cursor: { y: false, points: { show: false } },
    scales: { x: { time: false }, y: { range: [0, shown.length], dir: -1 as const } },
    axes: [{ stroke: color("--quiet"), grid: { stroke: color("--line") }, values: (_, v) => v.map((n) => took(n * 1000)) },
      { stroke: color("--text"), grid: { show: false }, size: Math.min(agents.length < 2 ? 150 : 210, el.clientWidth / 3), splits: () => shown.map((_, i) => i + 0.5), values: () => shown.map((a) => el.clientWidth < 600 || agents.length < 2 ? line(a.name, el.clientWidth < 600 ? 12 : 20) : line(a.name, 16) + " " + line(a.id, 14)) }],
    series: [{}, { stroke: "transparent", points: { show: false } }],
    hooks: { draw: [(u) => draw(u, now.current)] },
  }, [[0, end], [0, 0]], el) : null, [shown.length, from, run]);
  useEffect(() => {
    const u = plot.current;
    u?.setData([[0, end], [0, 0]], !zoomed.current);
    if (zoomed.current) u?.redraw(false);
  }, [data]);
  const zoomed = useRef(false);
  const zoom = (by: number, shift = 0) => {
    const u = plot.current;
    if (!u) return;
    const min = u.scales.x.min!, max = u.scales.x.max!, mid = (min + max) / 2 + shift * (max - min), half = ((max - min) / 2) * by;
    zoomed.current = by !== Infinity;
    u.setScale("x", by === Infinity ? { min: 0, max: end } : { min: Math.max(0, mid - half), max: Math.min(end, mid + half) });
  };
  useKeys({ "+": () => zoom(0.5), "-": () => zoom(2), "0": () => zoom(Infinity), ArrowLeft: () => zoom(1, -0.25), ArrowRight: () => zoom(1, 0.25), "]": () => setPage(Math.min(page + 1, pages - 1)), "[": () => setPage(Math.max(0, page - 1)) });
  return (
    <div class="pad" tabIndex={0} role="region" aria-label="View">
      <Problem text={error} />
      <div class="bar"><span class="legend">{kinds.map(([k, c]) => <span key={k}><i class={"swatch k" + c} /> {({ waiting: "waits", veto: "failed or vetoed" } as Record<string, string>)[k] ?? k}</span>)}</span>
        <span class="buttons"><button onClick={() => zoom(0.5)}>Zoom in <kbd>+</kbd></button><button onClick={() => zoom(2)}>Zoom out <kbd>-</kbd></button><button onClick={() => zoom(Infinity)}>All <kbd>0</kbd></button>
          {pages > 1 && <><button onClick={() => setPage(Math.max(0, page - 1))}>Agents before <kbd>[</kbd></button><button onClick={() => setPage(Math.min(page + 1, pages - 1))}>Next agents <kbd>]</kbd></button> {from + 1}–{from + shown.length} of {agents.length}</>}</span></div>
      <div ref={box} class="plot" role="img" aria-label="What each agent did when, by the time of the logs; the list below has the longest spans" />
      <details><summary>The longest spans as a list</summary><ul class="events">{[...spans].filter((s) => s.kind !== "turn").sort((a, b) => b.end_ms - b.start_ms - a.end_ms + a.start_ms).slice(0, 50).map((s, i) => <li key={i}><button class="link" onClick={() => open(s.agent)}>{line(s.agent_name)} {s.agent}</button> {s.kind === "waiting" ? "waits for" : s.kind} {line(s.name, 60)} {took(s.end_ms - s.start_ms)}, at {took(s.start_ms)}</li>)}</ul></details>
    </div>
  );
}

function draw(u: uPlot, d: { spans: Span[]; place: Map<string, number>; from: number }): void {
  const c = u.ctx, ratio = devicePixelRatio, left = u.bbox.left, right = left + u.bbox.width;
  const fills = Object.fromEntries(kinds.map(([k, v]) => [k, color(v)]));
  const first = u.scales.x.min! * 1000, last = u.scales.x.max! * 1000;
  c.save();
  c.beginPath();
  c.rect(left, u.bbox.top, u.bbox.width, u.bbox.height);
  c.clip();
  for (const want of ["turn", "waiting", "tool", "model", "veto"]) for (const s of d.spans) {
    const at = d.place.get(s.agent)! - d.from;
    if (s.kind !== want || at < 0 || at >= 40 || s.end_ms < first || s.start_ms > last) continue;
    const x0 = Math.max(left, u.valToPos(s.start_ms / 1000, "x", true)), x1 = Math.min(right, u.valToPos(s.end_ms / 1000, "x", true));
    const y = u.valToPos(at, "y", true), inset = (want === "turn" ? 9 : 4) * ratio;
    c.fillStyle = s.error ? color("--bad") : fills[want];
    c.fillRect(x0, y + inset, Math.max(ratio, x1 - x0), rowHeight * ratio - 2 * inset);
  }
  c.restore();
}
