// What agents send each other, in the order of the logs: a chart with a lane for each agent, and a list that says the same.
import uPlot from "uplot";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Note, RunModel } from "./model";
import { color, usePlot } from "./charts";
import { line } from "./text";
import { Badge, Rows, Text, useKeys } from "./parts";

const listMax = 2000; // messages in the list
const chartMax = 24; // messages in the chart
const rowHeight = 22;
const inks: Record<string, string> = { message: "--accent", delegate: "--text", handoff: "--warn", answer: "--good" };

/** subjectOf is where the message is published, below troupe.evt.RUN. */
function subjectOf(run: string, n: Note): string {
  const sent = n.kind === "delegate" || n.kind === "handoff";
  return `troupe.evt.${run}.${line(sent ? n.from : n.to)}.${n.kind === "message" ? "message.agent" : sent ? "delegation.requested" : "delegation.finished"}`;
}

const called = (model: RunModel, id: string): string => (id ? `${model.agents.get(id)?.name ?? id} (${id})` : "a child");

/** namesOf is how the chart and the list call each agent: by its name, with its id if several share the name. */
function namesOf(model: RunModel, notes: Note[]): (id: string) => string {
  const first = new Map<string, string>(), shared = new Set<string>();
  const nameOf = (id: string) => line(model.agents.get(id)?.name ?? id, 40);
  for (const n of notes) for (const id of [n.from, n.to]) {
    const name = nameOf(id);
    if (first.has(name) && first.get(name) !== id) shared.add(name);
    first.set(name, id);
  }
  return (id) => (!id ? "a child" : shared.has(nameOf(id)) ? `${nameOf(id)} ${line(id, 40)}` : nameOf(id));
}

/** shorten cuts the middle of a name to a number of characters: its end tells agents apart that share a name. */
function shorten(name: string, most: number): string {
  const end = Math.floor((most - 1) / 2);
  return name.length <= most ? name : `${name.slice(0, most - 1 - end)}…${end ? name.slice(-end) : ""}`;
}

export function Messages({ model, run }: { model: RunModel; run: string }) {
  const list = model.notes.slice(-listMax).map((n, i) => ({ n, id: String(model.notes.length - Math.min(listMax, model.notes.length) + i) }));
  const [at, setAt] = useState("");
  const [opened, setOpened] = useState("");
  useKeys({ Escape: () => setOpened("") });
  if (!list.length) return <p class="empty">No agent has sent a message to another one.</p>;
  const index = Math.max(0, list.findIndex((m) => m.id === at)), from = Math.max(0, Math.min(index - chartMax / 2, list.length - chartMax));
  const nameOf = namesOf(model, list.map((m) => m.n));
  const current = list.find((m) => m.id === opened)?.n;
  return (
    <>
      <p class="quiet">The messages between agents, the newest {list.length}, in the order of the logs. Enter shows one with its text and its <code>nats sub</code> line.</p>
      <Chart notes={list.slice(from, from + chartMax).map((m) => m.n)} chosen={index - from} nameOf={nameOf} />
      <Rows rows={list} id={(m) => m.id} label="Messages" selected={at || list[0].id} select={setAt} open={(m) => setOpened(m.id)} row={({ n }) => <>
        <time class="when">{n.at.slice(11, 23)}</time><span class="pairing"><b>{nameOf(n.from)}</b> → <b>{nameOf(n.to)}</b></span><Badge state={n.kind} /><span class="grow">{line(n.text, 200)}</span></>} />
      {current && <section class="entry" aria-label="Message"><div class="bar"><h2>{line(current.kind)}: {line(called(model, current.from))} → {line(called(model, current.to))}</h2><button onClick={() => setOpened("")}>Close <kbd>Esc</kbd></button></div>
        <p>Watch such messages on NATS: <code>nats --context troupe sub '{subjectOf(run, current)}'</code></p><Text text={current.text} /></section>}
    </>
  );
}

/** Chart draws a lane for each agent, and an arrow for each message. uPlot has the lanes and the axes; the arrows are drawn on it. */
function Chart({ notes, chosen, nameOf }: { notes: Note[]; chosen: number; nameOf: (id: string) => string }) {
  const lanes = [...new Set(notes.flatMap((n) => [n.from, n.to]))];
  const now = useRef({ notes, chosen, lanes });
  now.current = { notes, chosen, lanes };
  const { box, plot } = usePlot((el) => new uPlot({
    width: el.clientWidth, height: notes.length * rowHeight + 42, padding: [4, 16, 8, 0], legend: { show: false }, cursor: { show: false },
    scales: { x: { time: false, range: [-0.5, lanes.length - 0.5] }, y: { range: [0, notes.length], dir: -1 as const } },
    axes: [{ side: 0, size: 30, stroke: color("--text"), grid: { stroke: color("--line"), width: 2 }, splits: () => lanes.map((_, i) => i), values: () => lanes.map((id) => shorten(nameOf(id), Math.max(3, Math.floor(el.clientWidth / lanes.length / 9)))) },
      { stroke: color("--quiet"), grid: { show: false }, size: 76, splits: () => notes.map((_, i) => i + 0.5), values: () => now.current.notes.map((n) => n.at.slice(14, 23)) }],
    series: [{}, { stroke: "transparent", points: { show: false } }],
    hooks: { draw: [(u) => draw(u, now.current)] },
  }, [[-0.5, lanes.length - 0.5], [0, 0]], el), [notes.length, lanes.map(nameOf).join(" ")]);
  useEffect(() => plot.current?.redraw(false), [chosen, notes[0]?.at, notes[notes.length - 1]?.at]);
  return <div ref={box} class="plot sequence" role="img" aria-label="The messages near the chosen one as arrows between the lanes of agents; the list has all of them" />;
}

function draw(u: uPlot, d: { notes: Note[]; chosen: number; lanes: string[] }): void {
  const c = u.ctx, ratio = devicePixelRatio, head = 6 * ratio;
  c.save();
  d.notes.forEach((n, i) => {
    const y = u.valToPos(i + 0.5, "y", true), x0 = u.valToPos(d.lanes.indexOf(n.from), "x", true), x1 = u.valToPos(d.lanes.indexOf(n.to), "x", true), dir = Math.sign(x1 - x0) || 1, arrow = y + 6 * ratio;
    if (i === d.chosen) { c.fillStyle = color("--select"); c.fillRect(u.bbox.left, y - (rowHeight * ratio) / 2, u.bbox.width, rowHeight * ratio); }
    c.strokeStyle = c.fillStyle = color(inks[n.kind] ?? "--text");
    c.lineWidth = (i === d.chosen ? 2.5 : 1.5) * ratio;
    c.setLineDash(n.kind === "answer" ? [5 * ratio, 3 * ratio] : []);
    c.beginPath();
    c.moveTo(x0, arrow);
    c.lineTo(x1, arrow);
    c.stroke();
    c.setLineDash([]);
    c.beginPath();
    c.moveTo(x1, arrow);
    c.lineTo(x1 - dir * head, arrow - head / 1.5);
    c.lineTo(x1 - dir * head, arrow + head / 1.5);
    c.fill();
    c.font = `${11 * ratio}px system-ui, sans-serif`;
    c.textAlign = "center";
    c.textBaseline = "bottom"; // uPlot leaves another one
    const room = Math.max(4, Math.floor(Math.abs(x1 - x0) / ratio / 7));
    c.fillStyle = color("--quiet");
    const text = line(n.kind + ": " + n.text, 1000);
    c.fillText(text.length > room ? text.slice(0, room - 1) + "…" : text, (x0 + x1) / 2, arrow - 2 * ratio, Math.abs(x1 - x0));
  });
  c.restore();
}
