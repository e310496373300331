// The HTTP API of the node (docs/http.md): the page uses nothing else.

export interface AgentResult { id: string; name: string; parent: string | null; node: string; turns: number; tool_calls: number; tokens: number; cost_usd: number; stop_reason: string; phase: string }
export interface Result { run_id: string; stop_reason: string; partial: boolean; result: string; detail?: string; num_turns: number; duration_ms: number; total_cost_usd: number; cost_known: boolean; cost_estimated?: boolean; model_ms: number; tool_ms: number;
  budget: Budget; agents: AgentResult[]; cancel?: { text: string; why?: string; by?: string } }
export interface Budget { limit: number; used: number; reserved: number; limit_usd?: number; reserved_usd?: number; charged_unknown: number; overrun: number; frozen?: boolean }
export interface Spend { cost_usd: number; cost_known: boolean; cost_estimated?: boolean; budget: Budget }
export interface RunInfo { run_id: string; state: string; title: string; agent?: string; model: string; started: string; node?: string; position?: number; result?: Result; spend?: Spend; description?: { workspace?: string; fork?: string }; agents_started?: number; live_agents?: { id: string; node?: string }[] }
export interface Question { run_id: string; title?: string; agent: string; agent_name?: string; query: string; question: string; reason: string; call?: string; digest?: string; rule?: string; asked_ms?: number; due_ms?: number; approvals?: number; approved_by?: string }
export interface Amount { tokens: number; nano_usd: number; calls: number }
export interface RunBudget { run_id: string; state: string; budget: { limit: Amount; used: Amount; reserved: Amount; kept: Amount; charged_unknown?: Amount; frozen: boolean; waiting: number }; agents: { id: string; name: string; limit: Amount; used: Amount; reserved: Amount }[] }
export interface Message { role: string; text?: string; calls?: { id: string; name: string; args: string }[]; results?: { call: string; text: string; error?: boolean }[]; tombstone?: boolean; usage?: { input_tokens?: number; output_tokens?: number } }
export interface Transcript { agent: string; name: string; system: string; messages: Message[]; folds: Fold[] }
/** Fold is a compaction: in later prompts its text is in place of the first `upto` messages. */
export interface Fold { upto: number; turn: number; deep?: boolean; plain?: boolean; text: string }
export interface Span { agent: string; agent_name: string; kind: string; name: string; turn?: number; start_ms: number; end_ms: number; error?: boolean; open?: boolean }
export interface Event { id: string; ts: string; agent: string; node?: string; seq: number; kind: string; turn?: number; data?: Record<string, any> }
export interface NodeInfo { id: string; name: string; host?: string; state: string; version?: string; live: number; busy: number; resting: number; live_runs?: number; queued_runs?: number; pools?: Record<string, number[]>; started?: string; unproven?: string; logs?: { why: string; remedy: string } }

/** AgentInfo is an agent that a run may begin with, as its definition describes it. */
export interface AgentInfo { name: string; description: string; default?: boolean; model?: string; run_model?: string; tools: string[] | null; disallowed_tools?: string[]; delegates: string[] | null; permission_mode?: string; effort?: string; temperature?: number;
  limits: { max_turns: number; timeout_ms: number; max_tokens: number; max_budget_usd?: number; max_tool_calls: number; agent_tokens?: number; agent_usd?: number; agent_share?: number }; constraints?: string[]; criteria?: string[]; fail_if?: string[]; output_schema?: Record<string, any> }

export interface RecordedFact { id?: string; cause?: number; kind: string; bytes: number; text?: string; problem?: string }
export interface RecordedEntry { place: number; ts: string; from: string; epoch?: string; bytes: number; facts: RecordedFact[]; problem?: string; data?: string }
export interface RecordedLogs { logs: string[]; entries: RecordedEntry[]; more: boolean }

export interface ComparedRun { run_id: string; fork?: string; model: string; stop_reason: string; tokens: number; total_cost_usd: number; cost_estimated?: boolean; num_turns: number; agents: number; result: string }
export interface RunComparison { a: ComparedRun; b: ComparedRun; first_difference: { agent: string; turn: number; kind: string; call?: string; a: string; b: string } | null; result_diff?: string; steps: { turn: number; kind: string; call?: string; a: string; b: string; differs: boolean }[] }

export class Refused extends Error {
  constructor(public code: number, text: string, public hint: string) { super(text); }
}

// The session lives in this tab's storage, not in a cookie: a browser sends cookies of a host to all of its
// ports, where other programs and other users listen, and sends them by itself. Its owner is kept with it, and stays
// when it has ended: a tab goes on as nobody else without its person.
const key = "troupe.session", ownerKey = "troupe.owner";
const root = "/api/v1/";
const sessionsPath = root + "sessions";
/** Session is a credential and whose runs it opens; "": those of all, an operator's. */
interface Session { session: string; owner: string }
let session = "";
const refused = new Set<string>(); // sessions that the node takes no more
const channel = "BroadcastChannel" in self ? new BroadcastChannel("troupe.session") : null;
channel?.addEventListener("message", (m) => {
  if (m.data === "want" && session && !refused.has(session)) channel.postMessage({ session, owner: owner() ?? "" });
  else if (asking && mayAdopt(m.data)) { keep(m.data); asking(); }
});

/** owner is whose the session of this tab is, or was; "": an operator's; null: this tab never had one. */
export const owner = (): string | null => sessionStorage.getItem(ownerKey);

// mayAdopt reports whether a message is the session of another tab that this one may take: it is nobody else's than before.
function mayAdopt(m: any): m is Session {
  return typeof m?.session === "string" && typeof m.owner === "string" && !refused.has(m.session) && (owner() ?? m.owner) === m.owner;
}

// What shows the sign-in when the node refuses the session, and what then goes on: `asking` is set while it is shown.
let askPerson: (why: string) => void = () => {};
let asking: (() => void) | null = null;

/** onRefusedSession names what shows the sign-in once the node takes the session of this tab no more. */
export function onRefusedSession(show: (why: string) => void): void { askPerson = show; }

/** whenSignedIn calls `go` once another tab of this node has signed in. */
export function whenSignedIn(go: () => void): void { asking = () => { asking = null; go(); }; }

let replacing: Promise<string> | null = null;

/** refuseSession returns a session in place of one that the node takes no more: that of another tab, or "" and the sign-in is shown. */
function refuseSession(old: string): Promise<string> {
  refused.add(old);
  if (session !== old) return Promise.resolve(session); // it was replaced meanwhile, or the sign-in is shown
  replacing ??= askTabs(mayAdopt).then((other) => {
    replacing = null;
    if (session !== old) return session;
    if (other) {
      keep(other);
      return other.session;
    }
    signOut();
    askPerson("The session has ended: it lasts 12 hours, and ends when the token of the node is replaced.");
    return "";
  });
  return replacing;
}

/** askTabs asks the other tabs of this node for a session that this one takes: a link may be opened in a new one. */
function askTabs(takes: (m: any) => boolean): Promise<Session | null> {
  return new Promise((done) => {
    if (!channel) return done(null);
    const listen = (m: MessageEvent) => { if (takes(m.data)) finish(m.data); };
    const finish = (s: Session | null) => { channel.removeEventListener("message", listen); done(s); };
    channel.addEventListener("message", listen);
    channel.postMessage("want");
    setTimeout(() => finish(null), 150);
  });
}

// findOther returns a session that works and is another owner's: of this tab, or of another one. Who follows a link must
// know that from then on another name decides what is seen and done.
async function findOther(next: Session): Promise<Session | null> {
  const own = sessionStorage.getItem(key);
  const isOther = (m: any): boolean => typeof m?.session === "string" && typeof m.owner === "string" && m.owner !== next.owner && !refused.has(m.session);
  for (const s of [own ? { session: own, owner: owner() ?? "" } : null, await askTabs(isOther)]) {
    if (s && isOther(s) && (await works(s.session))) return s;
  }
  return null;
}

// works reports whether the node takes a session. A node that does not answer has refused nothing.
const works = (s: string): Promise<boolean> => send("GET", root + "runs?limit=1", undefined, s).then(() => true, (e) => !(e instanceof Refused && e.code === 401));

/** signIn finds or makes a session; false: the user must give a ticket or the token. `replaces` asks the person whether the
 * session of a ticket takes the place of one of another owner. */
export async function signIn(replaces: (now: string, next: string) => Promise<boolean>): Promise<boolean> {
  const ticket = /^#ticket=([A-Za-z0-9]+)$/.exec(location.hash)?.[1];
  if (!ticket) {
    const own = sessionStorage.getItem(key);
    if (own) session = own; else keepAny(await askTabs(mayAdopt));
    return session !== "";
  }
  history.replaceState(null, "", sessionStorage.getItem(backKey) ?? "#/runs");
  sessionStorage.removeItem(backKey);
  const own = sessionStorage.getItem(key);
  let next: Session;
  try {
    next = await exchange({ ticket }, "");
  } catch (e) {
    if (!own || !(await works(own))) throw e;
    session = own; // a link that is used up or forged signs nobody out
    return true;
  }
  const other = await findOther(next);
  if (other && !(await replaces(other.owner, next.owner))) keep(other);
  else passOn(next);
  return true;
}

export async function signInWithToken(token: string): Promise<void> {
  try {
    passOn(await exchange({}, token));
  } catch (e) {
    throw e instanceof Refused && e.code === 401 ? new Refused(401, "that is not the token of this node", "") : e;
  }
}

const exchange = async (body: unknown, token: string): Promise<Session> => {
  const doc = await send("POST", sessionsPath, body, token);
  return { session: doc.session, owner: doc.owner ?? "" };
};

/** comeBack keeps the address of this tab while a ticket takes its place. */
export function comeBack(hash: string): void { if (hash.startsWith("#/")) sessionStorage.setItem(backKey, hash); }
const backKey = "troupe.back";

// passOn keeps a new session and gives it to the tabs that ask for one.
function passOn(s: Session): void {
  keep(s);
  asking = null;
  channel?.postMessage(s);
}

export function signOut(): void { session = ""; sessionStorage.removeItem(key); }

function keep(s: Session): void {
  session = s.session;
  sessionStorage.setItem(key, s.session);
  sessionStorage.setItem(ownerKey, s.owner);
}

const keepAny = (s: Session | null): void => { if (s) keep(s); };

/** url is a path whose parts are texts of others: none of them reaches beyond its place. */
export function url(fixed: TemplateStringsArray, ...parts: string[]): string {
  return fixed.reduce((path, f, i) => {
    if (parts[i - 1] === "." || parts[i - 1] === "..") throw new Refused(400, "that is no id: " + parts[i - 1], "");
    return path + encodeURIComponent(parts[i - 1]) + f;
  });
}

/** isRunId reports whether a text of an address may be the id of a run, the beginning of one, or `last`. */
export const isRunId = (text: string): boolean => /^[0-9a-z]{1,26}$/i.test(text);

async function send(method: string, path: string, body: unknown, token: string, signal?: AbortSignal): Promise<any> {
  return (await sendFor(method, path, body, token, signal)).doc;
}

async function sendFor(method: string, path: string, body: unknown, token: string, signal?: AbortSignal): Promise<{ doc: any; headers: Headers }> {
  if (!new URL(path, location.origin).pathname.startsWith(root)) throw new Refused(400, "the page asks for nothing there: " + path, ""); // nor sends the session there
  const headers: Record<string, string> = {};
  if (token) headers.Authorization = "Bearer " + token;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const reply = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), signal, credentials: "omit" });
  const text = await reply.text();
  let doc: any;
  try { doc = text ? JSON.parse(text) : null; } catch { doc = null; }
  if (reply.status === 401 && token && path !== sessionsPath) {
    const other = await refuseSession(token);
    if (other) return sendFor(method, path, body, other, signal);
  }
  if (!reply.ok) throw new Refused(reply.status, doc?.error ?? `the node answered ${reply.status}`, doc?.hint ?? "");
  return { doc, headers: reply.headers };
}

// A run that is not far enough yet (409), a slow request (408) and a limit (429) may be otherwise the next time.
const passing = [408, 409, 429];

/** isFinal reports whether the same request is refused again, so that there is no use in sending it. */
export const isFinal = (e: unknown): boolean => e instanceof Refused && e.code >= 400 && e.code < 500 && !passing.includes(e.code);

export const get = <T>(path: string, signal?: AbortSignal): Promise<T> => send("GET", root.slice(0, -1) + path, undefined, session, signal);
/** getPage says too whether the node has more. */
export const getPage = async <T>(path: string): Promise<{ doc: T; more: boolean }> => {
  const { doc, headers } = await sendFor("GET", root.slice(0, -1) + path, undefined, session);
  return { doc, more: /rel="next"/.test(headers.get("Link") ?? "") };
};

const digits = "0123456789abcdefghjkmnpqrstvwxyz";

/** newID returns a ULID, as the node makes them for runs and requests: the time, then 80 random bits. */
export function newID(): string {
  let id = "";
  for (let ms = Date.now(), i = 0; i < 10; i++, ms = Math.floor(ms / 32)) id = digits[ms % 32] + id;
  for (const b of crypto.getRandomValues(new Uint8Array(16))) id += digits[b % 32];
  return id;
}

export const post = <T>(path: string, body: unknown): Promise<T> => send("POST", root.slice(0, -1) + path, body, session);

/** Status is how far a reader of events is: "glancing" shows what happens now while it reads what has happened; "gone" without the run, "refused" for another reason. Both are final. */
export type Status = "reading" | "glancing" | "live" | "polling" | "hidden" | "lost" | "ended" | "gone" | "refused";
export interface Follower { events(batch: Event[]): void; glance(e: Event): void; status(s: Status, why?: string): void }

// A browser opens about six connections to a node over all of its tabs, and a stream holds one. So a tab has a
// stream only while it is visible, and all tabs together have at most streamsMax; a visible tab without one asks
// for pages. Pages of plain HTTP at another address than localhost have no locks: there the first rule alone holds.
const streamsMax = 3;
const pollPause = 1000;

// takeSlot returns the function that gives one of the slots for streams back; null: all are taken.
async function takeSlot(): Promise<(() => void) | null> {
  if (!navigator.locks) return () => {};
  for (let i = 0; i < streamsMax; i++) {
    const release = await new Promise<(() => void) | null>((got) => {
      navigator.locks.request(`troupe.stream.${i}`, { ifAvailable: true }, (lock) => lock ? new Promise<void>((done) => got(done)) : got(null)).catch(() => got(null));
    });
    if (release) return release;
  }
  return null;
}

// untilShown waits until the tab is visible.
const untilShown = (signal: AbortSignal): Promise<void> => new Promise((done) => {
  const look = () => { if (!document.hidden || signal.aborted) { document.removeEventListener("visibilitychange", look); signal.removeEventListener("abort", look); done(); } };
  document.addEventListener("visibilitychange", look);
  signal.addEventListener("abort", look);
  look();
});

const wait = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

// Reading is where a follower of a run is. `polled`: its last pages are a second old at most.
interface Reading { run: string; to: Follower; stop: AbortSignal; cursor: string; pause: number; polled: boolean; glancing: boolean }

const pauseMin = 500, pauseMax = 5000; // before another attempt
const pageEvents = 2000; // of a page
const eventsAtOnce = 250; // more of them take longer than a frame on a slow machine

async function readPages(r: Reading): Promise<void> {
  for (let more = true; more && !r.stop.aborted;) {
    if (!r.polled) r.to.status(r.glancing ? "glancing" : "reading");
    const page = await get<{ events: Event[]; cursor: string; more: boolean }>(url`/runs/${r.run}/events?limit=${String(pageEvents)}&cursor=${r.cursor}`, r.stop);
    for (let i = 0; i < page.events.length && !r.stop.aborted; i += eventsAtOnce) {
      if (i) await wait(0);
      r.to.events(page.events.slice(i, i + eventsAtOnce));
    }
    r.cursor = page.cursor;
    more = page.more;
  }
}

// connect opens the stream of events after a cursor: null, the run has ended; undefined, the session was replaced.
async function connect(r: Reading, cursor: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array> | null | undefined> {
  const sent = session;
  const reply = await fetch(root + url`runs/${r.run}/events` + `${cursor === now ? "?cursor=" + now : ""}`, { headers: { Authorization: "Bearer " + sent, Accept: "text/event-stream", ...(cursor && cursor !== now ? { "Last-Event-ID": cursor } : {}) }, signal: AbortSignal.any([r.stop, signal]), credentials: "omit" });
  if (reply.status === 204) return null;
  if (reply.status === 401 && (await refuseSession(sent))) return undefined;
  if (!reply.ok || !reply.body) throw new Refused(reply.status, (await reply.json().catch(() => null))?.error ?? "the stream of events was refused", "");
  return reply.body;
}
const now = "now"; // the cursor of a stream that begins with the newest entries

// stream reads until the end of the run (true), or until the stream breaks or the tab is hidden.
async function stream(r: Reading): Promise<boolean> {
  const cut = new AbortController(), hide = () => { if (document.hidden) cut.abort(); };
  document.addEventListener("visibilitychange", hide);
  try {
    const body = await connect(r, r.cursor, cut.signal);
    if (!body) return body === null;
    r.to.status("live");
    r.pause = pauseMin;
    return await readStream(body, (id, kind, data) => {
      if (kind === "end") return true;
      if (data) r.to.events([JSON.parse(data)]);
      if (id) r.cursor = id; // of a run of many agents some come alone
      return false;
    });
  } catch (e) {
    if (cut.signal.aborted && !r.stop.aborted) return false;
    throw e;
  } finally {
    document.removeEventListener("visibilitychange", hide);
    cut.abort(); // also after an event that could not be shown
  }
}

// glance shows what happens now until the function that it returns is called. It only adds to what a reader of all events
// shows later, so a stream that breaks is not opened again.
function glance(r: Reading): () => void {
  const cut = new AbortController(), hide = () => { if (document.hidden) cut.abort(); };
  document.addEventListener("visibilitychange", hide);
  void (async () => {
    await wait(glancePause);
    if (cut.signal.aborted) return;
    const body = await connect(r, now, cut.signal);
    if (!body) return;
    r.glancing = true;
    r.to.status("glancing");
    await readStream(body, (_, kind, data) => { if (data && kind !== "end") r.to.glance(JSON.parse(data)); return kind === "end"; });
  })().catch(() => {}).finally(() => { r.glancing = false; });
  return () => { document.removeEventListener("visibilitychange", hide); cut.abort(); };
}
const glancePause = 200; // most runs are read by then

// readRun reads pages, and then the stream if there is a slot for it. It returns whether the run has ended.
async function readRun(r: Reading): Promise<boolean> {
  for (r.polled = false; ; r.polled = true) {
    if (document.hidden) { r.to.status("hidden"); r.polled = false; await untilShown(r.stop); }
    let release = r.polled ? null : await takeSlot();
    try {
      const end = release ? glance(r) : null;
      try { await readPages(r); } finally { end?.(); }
      release ??= await takeSlot();
      if (release) return await stream(r);
    } finally { release?.(); }
    r.to.status("polling");
    r.pause = pauseMin;
    if ((await get<{ state: string }>(url`/runs/${r.run}?brief=true`, r.stop)).state === "finished") { await readPages(r); return true; }
    await wait(pollPause);
    r.stop.throwIfAborted();
  }
}

/** follow reads the events of a run, first in pages from the logs, then as a stream, and comes back at its cursor
 * after the node has restarted or the tab was hidden. It returns the function that ends it. */
export function follow(run: string, to: Follower): () => void {
  const stop = new AbortController();
  const r: Reading = { run, to, stop: stop.signal, cursor: "", pause: pauseMin, polled: false, glancing: false };
  const loop = async () => {
    while (!stop.signal.aborted) {
      let why = "the node does not answer";
      try {
        if (await readRun(r)) return to.status("ended");
        if (document.hidden) continue;
      } catch (e) {
        if (stop.signal.aborted) return;
        if (isFinal(e)) return to.status((e as Refused).code === 404 || (e as Refused).code === 410 ? "gone" : "refused", (e as Refused).message);
        if (e instanceof Refused) why = e.message;
      }
      to.status("lost", why);
      await wait(r.pause);
      r.pause = Math.min(r.pause * 2, pauseMax);
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
        if (each(id, kind, data)) return true;
        id = kind = data = "";
      }
    }
  }
}
