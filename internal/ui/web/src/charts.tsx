// Charts of the budget, drawn by uPlot, and what all charts share.
import uPlot from "uplot";
import { useEffect, useRef, useState } from "preact/hooks";
import { line, tokens } from "./text";
import type { RunModel } from "./model";

export const color = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const dark = matchMedia("(prefers-color-scheme: dark)");

/** useScheme is whether the page is dark. A chart takes its colours when it is made, so it is made again when that changes. */
function useScheme(): boolean {
  const [is, set] = useState(dark.matches);
  useEffect(() => {
    const changed = () => set(dark.matches);
    dark.addEventListener("change", changed);
    return () => dark.removeEventListener("change", changed);
  }, []);
  return is;
}

export function usePlot(make: (box: HTMLDivElement) => uPlot | null, again: unknown[]): { box: { current: HTMLDivElement | null }; plot: { current: uPlot | null } } {
  const box = useRef<HTMLDivElement>(null), plot = useRef<uPlot | null>(null);
  const scheme = useScheme();
  useEffect(() => {
    const el = box.current!;
    plot.current = make(el);
    const watch = new ResizeObserver(() => plot.current?.setSize({ width: el.clientWidth, height: plot.current.height }));
    watch.observe(el);
    return () => { watch.disconnect(); plot.current?.destroy(); plot.current = null; };
  }, [...again, scheme]);
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
  useEffect(() => { plot.current?.setData(data()); }, [samples.length, samples.at(-1)?.[0], samples.at(-1)?.[2]]);
  const now = samples.at(-1);
  return <figure><figcaption>Tokens over time{now ? `: ${tokens(now[1])} spent, ${tokens(now[2])} held` : ""}</figcaption><div ref={box} class="plot" role="img" aria-label="Tokens spent and held over time; the table has the figures" /></figure>;
}

const linesMax = 5; // agents in the chart
const lineColors = ["--accent", "--good", "--warn", "--bad", "--quiet"];

/** AgentChart draws what the agents with the largest spend have spent over time. */
export function AgentChart({ model }: { model: RunModel }) {
  const sums = new Map<string, number>();
  for (const [, id, n] of model.spent) sums.set(id, Math.max(n, sums.get(id) ?? 0));
  const top = [...sums].sort((a, b) => b[1] - a[1]).slice(0, linesMax).map(([id]) => id).sort();
  const data = (): uPlot.AlignedData => {
    const list = model.spent.filter((s) => top.includes(s[1])).sort((a, b) => a[0] - b[0]);
    const now = top.map(() => 0), out: number[][] = [[], ...top.map(() => [])];
    for (const [at, id, n] of list) {
      now[top.indexOf(id)] = n;
      out[0].push(at);
      now.forEach((v, i) => out[i + 1].push(v));
    }
    return out as uPlot.AlignedData;
  };
  const { box, plot } = usePlot((el) => top.length ? new uPlot({
    width: el.clientWidth, height: 200, legend: { show: true }, scales: { x: { time: true } },
    axes: [{ stroke: color("--quiet"), grid: { stroke: color("--line") } }, { stroke: color("--quiet"), grid: { stroke: color("--line") }, size: 60, values: (_, v) => v.map((n) => tokens(n)) }],
    series: [{}, ...top.map((id, i) => ({ label: line(model.agents.get(id)?.name ?? id, 20) + " " + line(id, 14), stroke: color(lineColors[i]), width: 2, dash: i % 2 ? [6, 3] : undefined, paths: uPlot.paths.stepped!({ align: 1 }) }))],
  }, data(), el) : null, [top.join()]);
  useEffect(() => { if (top.length) plot.current?.setData(data()); }, [model.spent.length, model.spent[model.spent.length - 1]?.[0]]);
  return <figure><figcaption>{top.length ? "Tokens by agent over time" : ""}{sums.size > linesMax ? `: the largest ${linesMax} of ${sums.size}` : ""}</figcaption><div ref={box} class="plot" role="img" aria-label="Tokens that each agent has spent over time; the table has the figures" /></figure>;
}
