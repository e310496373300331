// A run as its events tell it. It is bounded: of events only the newest stay.
import type { AgentResult, Event, Result } from "./api";
import { gist } from "./text";

export interface Agent { id: string; name: string; parent: string; depth: number; state: string; turn: number; calls: number; tokens: number; usd: number; node: string; reason: string; activity: string; seen: { calls: number; tokens: number; usd: number };
  /** glanced is the entry up to which the agent is shown, before its events are read up to there. */ glanced: number;
  /** asks are its open questions by their query, and open its calls in progress. */ asks?: Map<string, Asked>; open?: Map<string, { label: string; child: boolean }>; inModel?: boolean }
/** Asked is a question that waits for a person; with a call, if it is about one, and isCall if that may run or not. */
export interface Asked { question: string; call: string; isCall: boolean }
/** Handoff is the moment at which one agent took over the conversation of another. */
export interface Handoff { at: string; from: string; to: string; call: string }
export interface Note { at: string; from: string; to: string; kind: string; text: string }

const recentMax = 2000;
const notesMax = 2000;
const samplesMax = 4000;
const handoffsMax = 2000;
const modelsMax = 100;
const seenMax = 20000;

// isBefore reports whether an agent was started before a sibling: ids end with turn and index.
function isBefore(a: string, b: string): boolean {
  const [turnA, indexA] = a.split("-").slice(-2).map(Number), [turnB, indexB] = b.split("-").slice(-2).map(Number);
  return turnA < turnB || (turnA === turnB && indexA < indexB);
}

const children = (n: number): string => (n === 1 ? "1 child" : `${n} children`);

export class RunModel {
  agents = new Map<string, Agent>();
  children = new Map<string, string[]>();
  recent: Event[] = [];
  notes: Note[] = [];
  handoffs: Handoff[] = []; // the newest
  samples: [number, number, number, number][] = []; // seconds, used, held, limit
  spend = new Map<string, { calls: number; tokens: number; usd: number }>(); // by model
  spent: [number, string, number][] = []; // seconds, agent, the tokens that it has spent until then
  private isReading = false; // the newest sample is a reading of the pool, and no event
  delta = new Map<string, string>();
  changed = new Map<string, number>(); // of the transcript of an agent
  result: Result | null = null;
  started: Record<string, any> | null = null;
  count = 0;
  frozen = false; // the pool of the run
  private frozenBelow = new Set<string>(); // agents that are frozen with those below them
  private seen = new Set<string>(); // the newest ids of events, and those before them
  private seenBefore = new Set<string>();
  private order: Agent[] | null = null; // what rows returns until an agent is added

  agent(id: string): Agent {
    let a = this.agents.get(id);
    if (!a) {
      const parent = id === "root" ? "" : id.split("-").slice(0, -2).join("-");
      a = { id, name: id, parent, depth: parent ? (id.split("-").length - 1) / 2 : 0, state: "live", turn: 0, calls: 0, tokens: 0, usd: 0, node: "", reason: "", activity: "", seen: { calls: 0, tokens: 0, usd: 0 }, glanced: 0 };
      this.agents.set(id, a);
      this.order = null;
      const list = this.children.get(parent);
      if (!list) this.children.set(parent, [id]);
      else {
        let at = list.length; // mostly: an agent that is known before its elder siblings is rare
        while (at > 0 && isBefore(id, list[at - 1])) at--;
        list.splice(at, 0, id);
      }
    }
    return a;
  }

  /** addLive adds agents that have not ended, with those above them: what the node knows at once of a run of many. */
  addLive(list: { id: string; node?: string }[]): void {
    for (const l of list) {
      const parts = l.id.split("-");
      for (let n = 1; n < parts.length; n += 2) this.agent(parts.slice(0, n).join("-"));
      const a = this.agent(l.id);
      a.node ||= l.node ?? "";
    }
  }

  /** snapshot takes over the agents of a result: what the node says before the events are read. */
  snapshot(list: AgentResult[]): void {
    for (const r of list) {
      const a = this.agent(r.id);
      Object.assign(a, { name: r.name, state: r.phase, turn: Math.max(a.turn, r.turns), calls: r.tool_calls, tokens: r.tokens, usd: r.cost_usd, node: r.node, reason: r.stop_reason });
    }
  }

  add(e: Event): void {
    const d = e.data ?? {};
    if (e.seq === 0) return this.addDelta(e, d);
    if (this.seen.has(e.id) || this.seenBefore.has(e.id)) return;
    if (this.seen.size >= seenMax) { this.seenBefore = this.seen; this.seen = new Set(); }
    this.seen.add(e.id);
    this.count++;
    this.recent.push(e);
    if (this.recent.length > 2 * recentMax) this.recent = this.recent.slice(-recentMax);
    if (e.agent === "super") this.addOfRun(e, d); else this.addOfAgent(e, d);
  }

  private addOfRun(e: Event, d: Record<string, any>): void {
    switch (e.kind) {
      case "run.started": this.started = d; break;
      case "run.finished": this.result = d as Result; this.snapshot(this.result.agents ?? []); for (const a of this.agents.values()) a.asks = a.open = undefined; break;
      case "agent.spawned": this.agent(d.id).name = d.name; break;
    }
    if (e.kind.startsWith("budget.") && typeof d.used === "number") {
      this.frozen = !!d.frozen;
      if (d.subtree?.frozen) this.frozenBelow.add(d.id); else if (d.subtree) this.frozenBelow.delete(d.id);
      this.sample(Date.parse(e.ts) / 1000, d.used, d.reserved ?? 0, d.limit?.tokens ?? 0);
    }
    const end = e.kind === "run.finished" ? (d as Result).budget : undefined;
    if (end) this.sample(Date.parse(e.ts) / 1000, end.used, end.reserved, end.limit);
  }

  private sample(at: number, used: number, held: number, limit: number): void {
    const last = this.samples.at(-1);
    if (last && this.isReading) last[0] = Math.min(last[0], at); // the clock of a browser may be ahead of that of the log
    this.isReading = false;
    this.samples.push([at, used, held, limit]);
    if (this.samples.length > samplesMax) this.samples = this.samples.filter((_, i) => i % 2 === 1);
  }

  /** readPool adds what the pool holds now, if it is less than the newest event says: no event tells that an agent has returned an
   * allowance. `since` is the newest sample when the pool was asked for: a later event is newer than the answer. */
  readPool(since: [number, number, number, number] | undefined, used: number, held: number): void {
    const last = this.samples.at(-1);
    if (!last || last !== since || used !== last[1] || held >= last[2]) return;
    this.sample(Math.max(last[0], Date.now() / 1000), used, held, last[3]);
    this.isReading = true;
  }

  // addDelta adds a piece of a reply, which is in no log.
  private addDelta(e: Event, d: Record<string, any>): void {
    if (e.kind === "message.delta") this.delta.set(e.agent, ((this.delta.get(e.agent) ?? "") + d.text).slice(-20000));
  }

  /** glance shows what an agent does now, while the events before that are read. It counts nothing: the event is read, too. */
  glance(e: Event): void {
    const d = e.data ?? {};
    if (e.seq === 0) return this.addDelta(e, d);
    if (e.agent === "super") {
      if (e.kind === "agent.spawned") this.agent(d.id).name = d.name;
      return;
    }
    if (!this.agents.has(e.agent)) this.addLive([{ id: e.agent, node: e.node }]);
    this.addState(e, d).glanced = e.seq;
  }

  // addState changes what an agent is shown to be and to do.
  private addState(e: Event, d: Record<string, any>): Agent {
    const a = this.agent(e.agent);
    if (e.turn) a.turn = Math.max(a.turn, e.turn);
    if (e.kind === "agent.started") a.name = d.name;
    if (e.seq < a.glanced) return a;
    if (e.node) a.node = e.node;
    switch (e.kind) {
      case "agent.started": a.state = "live"; break;
      case "agent.resumed": if (a.state !== "done") { a.state = a.asks?.size ? "parked" : "live"; a.inModel = false; } break;
      case "agent.parked": case "query.asked":
        a.state = "parked";
        (a.asks ??= new Map()).set(String(d.query), { question: String(d.question ?? a.asks.get(String(d.query))?.question ?? "").slice(0, 4000), call: d.call ?? "", isCall: !!d.digest });
        break;
      case "query.answered":
        a.asks?.delete(String(d.query));
        if (!a.asks?.size) a.state = "live";
        a.activity = "";
        break;
      case "agent.waiting": a.activity = Array.isArray(d.children) ? `waits for ${children(d.children.length)}` : "waits for its children"; break;
      case "agent.finished": Object.assign(a, { state: "done", reason: d.stop_reason, activity: "", asks: undefined, open: undefined, inModel: false }); break;
      case "agent.handed_off": a.open?.delete(d.call); break;
      case "model.started": a.activity = "model"; a.inModel = true; break;
      case "model.finished": case "model.retry": case "error.raised": a.activity = ""; a.inModel = false; break;
      case "gate.paused": a.activity = "waits: throttled"; break;
      case "tool.started": case "delegation.requested": (a.open ??= new Map()).set(d.call, { label: String(d.tool), child: !!d.child || e.kind !== "tool.started" }); break;
      case "tool.finished": case "delegation.finished": case "delegation.background": case "tool.retry": a.open?.delete(d.call); break;
    }
    return a;
  }

  /** doing is what an agent does or waits for now, in the words of troupe top. */
  doing(a: Agent): string {
    if (a.state === "done") return "";
    const [asked] = a.asks?.values() ?? [], calls = [...(a.open?.values() ?? [])];
    if (asked) return "asks: " + gist(asked.question);
    if (calls.length && calls.every((c) => c.child)) return "waits for " + children(calls.length);
    if (calls.length) return calls[calls.length - 1].label + (calls.length > 1 ? ` and ${calls.length - 1} more` : "");
    return this.isFrozen(a.id) && !a.inModel ? "frozen" : a.activity;
  }

  /** isFrozen reports whether an agent waits at its next turn because a part of the tree is frozen, or only closes because the run is. */
  isFrozen(id: string): boolean {
    if (this.frozen) return true;
    for (const top of this.frozenBelow) if (id === top || id.startsWith(top + "-")) return true;
    return false;
  }

  /** asked is the open question about a call of an agent. */
  asked(agent: string, call: string): Asked | undefined {
    for (const q of this.agents.get(agent)?.asks?.values() ?? []) if (q.call === call) return q;
    return undefined;
  }

  /** countOpen counts the open questions. */
  countOpen(): number {
    let n = 0;
    for (const a of this.agents.values()) n += a.asks?.size ?? 0;
    return n;
  }

  private addOfAgent(e: Event, d: Record<string, any>): void {
    const a = this.addState(e, d);
    if (e.kind.startsWith("message.") || e.kind === "tool.finished") this.changed.set(e.agent, (this.changed.get(e.agent) ?? 0) + 1);
    switch (e.kind) {
      case "model.finished":
        this.addSpend(e, a, d);
        a.usd = Math.max(a.usd, a.seen.usd); // a snapshot may be ahead of the events
        a.tokens = Math.max(a.tokens, a.seen.tokens);
        break;
      case "tool.validated": a.calls = Math.max(a.calls, ++a.seen.calls); break; // what the limit of tool calls counts: delegations, too
      case "message.assistant": this.delta.delete(e.agent); break;
      case "message.agent": this.note(e, d.from, e.agent, "message", d.text); break;
      case "agent.handed_off": this.handOff(e, d); break;
      case "delegation.requested": this.note(e, e.agent, d.child ?? "", "delegate", d.args); break;
      case "delegation.finished": this.note(e, d.child ?? "", e.agent, "answer", d.text); break;
    }
  }

  private addSpend(e: Event, a: Agent, d: Record<string, any>): void {
    let used = 0;
    for (const n of ["input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"]) used += d.usage?.[n] ?? 0;
    a.seen.usd += d.cost_usd ?? 0;
    a.seen.tokens += used;
    const name = String(d.model || "unknown");
    const s = this.spend.get(name) ?? { calls: 0, tokens: 0, usd: 0 };
    if (this.spend.size < modelsMax || this.spend.has(name)) this.spend.set(name, { calls: s.calls + 1, tokens: s.tokens + used, usd: s.usd + (d.cost_usd ?? 0) });
    this.spent.push([Date.parse(e.ts) / 1000, e.agent, a.seen.tokens]);
    if (this.spent.length > samplesMax) this.spent = this.spent.filter((_, i) => i % 2 === 1);
  }

  private note(e: Event, from: string, to: string, kind: string, text: string | undefined): void {
    this.notes.push({ at: e.ts, from, to, kind, text: text ?? "" });
    if (this.notes.length > 2 * notesMax) this.notes = this.notes.slice(-notesMax);
  }

  private handOff(e: Event, d: Record<string, any>): void {
    this.handoffs.push({ at: e.ts, from: e.agent, to: d.to, call: d.call });
    if (this.handoffs.length > 2 * handoffsMax) this.handoffs = this.handoffs.slice(-handoffsMax);
    if (d.name) this.agent(d.to).name = d.name;
    this.changed.set(e.agent, (this.changed.get(e.agent) ?? 0) + 1);
    for (let i = this.notes.length - 1; i >= 0; i--) if (this.notes[i].kind === "delegate" && this.notes[i].from === e.agent && this.notes[i].to === d.to) { this.notes[i].kind = "handoff"; break; }
  }

  /** given and taken say in words what a handoff is for the agent that gave the conversation, and for the one that took it. */
  given(h: Handoff): string { return `${this.called(h.to)} took over at ${h.at.slice(11, 19)}`; }
  taken(h: Handoff): string { return `took over from ${this.called(h.from)} at ${h.at.slice(11, 19)}`; }
  private called(id: string): string { return `${this.agents.get(id)?.name ?? id} (${id})`; }

  /** story is given and taken of an agent in the order of time. */
  story(id: string): string[] {
    return this.handoffs.filter((h) => h.from === id || h.to === id).map((h) => (h.to === id ? this.taken(h) : this.given(h)));
  }

  /** rows lists the agents in the order of the tree. */
  rows(): Agent[] {
    if (this.order) return this.order;
    const out: Agent[] = [];
    const stack = [...(this.children.get("") ?? [])].reverse();
    while (stack.length) {
      const id = stack.pop()!;
      out.push(this.agents.get(id)!);
      const below = this.children.get(id);
      if (below) for (let i = below.length - 1; i >= 0; i--) stack.push(below[i]);
    }
    this.order = out;
    return out;
  }
}
