// The HTTP API of the node (docs/http.md): the page uses nothing else.

export interface AgentResult { id: string; name: string; parent: string | null; node: string; turns: number; tool_calls: number; tokens: number; cost_usd: number; stop_reason: string; phase: string }
export interface Result { run_id: string; stop_reason: string; partial: boolean; result: string; detail?: string; num_turns: number; duration_ms: number; total_cost_usd: number; cost_known: boolean; cost_estimated?: boolean; model_ms: number; tool_ms: number;
  budget: Budget; agents: AgentResult[]; cancel?: { text: string; why?: string } }
export interface Budget { limit: number; used: number; reserved: number; limit_usd?: number; reserved_usd?: number; charged_unknown: number; overrun: number; frozen?: boolean }
export interface Spend { cost_usd: number; cost_known: boolean; cost_estimated?: boolean; budget: Budget }
export interface RunInfo { run_id: string; state: string; title: string; model: string; started: string; node?: string; position?: number; result?: Result; spend?: Spend; description?: { workspace?: string; fork?: string } }
export interface Question { run_id: string; agent: string; query: string; question: string; reason: string; call?: string; digest?: string; rule?: string; asked_ms?: number; due_ms?: number; approvals?: number; approved_by?: string }
export interface Amount { tokens: number; nano_usd: number; calls: number }
export interface RunBudget { run_id: string; state: string; budget: { limit: Amount; used: Amount; reserved: Amount; kept: Amount; frozen: boolean; waiting: number }; agents: { id: string; name: string; limit: Amount; used: Amount; reserved: Amount }[] }
export interface Message { role: string; text?: string; calls?: { id: string; name: string; args: string }[]; results?: { call: string; text: string; error?: boolean }[]; tombstone?: boolean; usage?: { input_tokens?: number; output_tokens?: number } }
export interface Transcript { agent: string; name: string; system: string; messages: Message[]; folds: unknown[] }
export interface Span { agent: string; agent_name: string; kind: string; name: string; turn?: number; start_ms: number; end_ms: number; error?: boolean; open?: boolean }
export interface Event { id: string; ts: string; agent: string; node?: string; seq: number; kind: string; turn?: number; data?: Record<string, any> }
export interface NodeInfo { id: string; name: string; host?: string; state: string; version?: string; live: number; busy: number; resting: number; live_runs?: number; queued_runs?: number; pools?: Record<string, number[]>; started?: string; unproven?: string; logs?: { why: string; remedy: string } }

export interface RecordedFact { id?: string; cause?: number; kind: string; bytes: number; text?: string; problem?: string }
export interface RecordedEntry { place: number; ts: string; from: string; epoch?: string; bytes: number; facts: RecordedFact[]; problem?: string; data?: string }
export interface RecordedLogs { logs: string[]; entries: RecordedEntry[]; more: boolean }

export interface ComparedRun { run_id: string; fork?: string; model: string; stop_reason: string; tokens: number; total_cost_usd: number; cost_estimated?: boolean; num_turns: number; agents: number; result: string }
export interface RunComparison { a: ComparedRun; b: ComparedRun; first_difference: { agent: string; turn: number; kind: string; call?: string; a: string; b: string } | null; result_diff?: string; steps: { turn: number; kind: string; call?: string; a: string; b: string; differs: boolean }[] }

export class Refused extends Error {
  constructor(public code: number, text: string, public hint: string) { super(text); }
}

// The session lives in this tab's storage, not in a cookie: a browser sends cookies of a host to all of its
// ports, where other programs and other users listen, and sends them by itself.
const key = "troupe.session";
let session = "";
const channel = "BroadcastChannel" in self ? new BroadcastChannel("troupe.session") : null;
channel?.addEventListener("message", (m) => {
  if (m.data === "want" && session) channel.postMessage({ session });
});

/** askTabs asks the other tabs of this node for their session: a link may be opened in a new one. */
function askTabs(): Promise<string> {
  return new Promise((done) => {
    if (!channel) return done("");
    const listen = (m: MessageEvent) => { if (typeof m.data?.session === "string") finish(m.data.session); };
    const finish = (s: string) => { channel.removeEventListener("message", listen); done(s); };
    channel.addEventListener("message", listen);
    channel.postMessage("want");
    setTimeout(() => finish(""), 150);
  });
}

/** signIn finds or makes a session; false: the user must give a ticket or the token. */
export async function signIn(): Promise<boolean> {
  const ticket = /^#ticket=([A-Za-z0-9]+)$/.exec(location.hash)?.[1];
  if (ticket) {
    history.replaceState(null, "", "#/runs");
    keep((await send("POST", "/api/v1/sessions", { ticket }, "")).session);
  } else {
    keep(sessionStorage.getItem(key) || (await askTabs()));
  }
  return session !== "";
}

export async function signInWithToken(token: string): Promise<void> {
  keep((await send("POST", "/api/v1/sessions", {}, token)).session);
}

export function signOut(): void { session = ""; sessionStorage.removeItem(key); }

function keep(s: string): void {
  session = s;
  if (s) sessionStorage.setItem(key, s);
}

async function send(method: string, path: string, body: unknown, token: string, signal?: AbortSignal): Promise<any> {
  const headers: Record<string, string> = {};
  if (token) headers.Authorization = "Bearer " + token;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const reply = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), signal, credentials: "omit" });
  const text = await reply.text();
  let doc: any;
  try { doc = text ? JSON.parse(text) : null; } catch { doc = null; }
  if (!reply.ok) throw new Refused(reply.status, doc?.error ?? `the node answered ${reply.status}`, doc?.hint ?? "");
  return doc;
}

export const get = <T>(path: string, signal?: AbortSignal): Promise<T> => send("GET", "/api/v1" + path, undefined, session, signal);
export const post = <T>(path: string, body: unknown): Promise<T> => send("POST", "/api/v1" + path, body, session);

export interface Follower { events(batch: Event[]): void; status(s: "reading" | "live" | "lost" | "ended"): void }

/** follow reads the events of a run, first in pages from the logs, then as a stream, and comes back at its cursor
 * after the node has restarted. It returns the function that ends it. */
export function follow(run: string, to: Follower): () => void {
  const stop = new AbortController();
  let cursor = "", pause = 500;
  const read = async () => {
    for (let more = true; more && !stop.signal.aborted;) {
      to.status("reading");
      const page = await get<{ events: Event[]; cursor: string; more: boolean }>(`/runs/${run}/events?limit=5000&cursor=${encodeURIComponent(cursor)}`, stop.signal);
      cursor = page.cursor;
      if (page.events.length) to.events(page.events);
      more = page.more;
    }
    const reply = await fetch(`/api/v1/runs/${run}/events`, { headers: { Authorization: "Bearer " + session, Accept: "text/event-stream", ...(cursor ? { "Last-Event-ID": cursor } : {}) }, signal: stop.signal, credentials: "omit" });
    if (reply.status === 204) return true;
    if (!reply.ok || !reply.body) throw new Refused(reply.status, "the stream of events was refused", "");
    to.status("live");
    pause = 500;
    return await readStream(reply.body, (id, kind, data) => {
      if (kind === "end") return true;
      to.events([JSON.parse(data)]);
      if (id) cursor = id;
      return false;
    });
  };
  const loop = async () => {
    while (!stop.signal.aborted) {
      try {
        if (await read()) return to.status("ended");
      } catch (e) {
        if (stop.signal.aborted) return;
        if (e instanceof Refused && e.code < 500 && e.code !== 429) return to.status("lost");
      }
      to.status("lost");
      await new Promise((r) => setTimeout(r, pause));
      pause = Math.min(pause * 2, 5000);
    }
  };
  void loop();
  return () => stop.abort();
}

// readStream reads server-sent events until one returns true (the end), or the stream breaks (false).
async function readStream(body: ReadableStream<Uint8Array>, each: (id: string, kind: string, data: string) => boolean): Promise<boolean> {
  const reader = body.pipeThrough(new TextDecoderStream() as unknown as ReadableWritablePair<string, Uint8Array>).getReader();
  let rest = "", id = "", kind = "", data = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return false;
    rest += value;
    const lines = rest.split("\n");
    rest = lines.pop()!;
    for (const l of lines) {
      if (l.startsWith("id: ")) id = l.slice(4);
      else if (l.startsWith("event: ")) kind = l.slice(7);
      else if (l.startsWith("data: ")) data += (data ? "\n" : "") + l.slice(6);
      else if (l === "" && (data || id)) {
        if (data && each(id, kind, data)) return true;
        id = kind = data = "";
      }
    }
  }
}
