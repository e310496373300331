// The questions that wait for a person, of all runs or of one, and who answered them first.
import { useEffect, useLayoutEffect, useReducer, useRef, useState } from "preact/hooks";
import { get, isFinal, post, type Event, type Question, type Transcript, url } from "./api";
import { file } from "./file";
import { age, line } from "./text";
import { Badge, Diff, Form, explain, explainUnsent, Problem, useData, useKeys, type Field } from "./parts";

// The name of the person is asked once in a tab; the last one of this browser is proposed.
const nameKey = "troupe.name";
export const myName = (): string => sessionStorage.getItem(nameKey) ?? "";
function keepName(name: string): string {
  sessionStorage.setItem(nameKey, name);
  localStorage.setItem(nameKey, name);
  return name;
}
const nameField = (): Field => ({ name: "by", label: "Your name, which the record keeps", value: myName() || (localStorage.getItem(nameKey) ?? ""), required: true });
const nameIfUnknown = (): Field[] => (myName() ? [] : [nameField()]);

type More = Record<string, string | undefined>;

const countEvery = 10_000; // ms

const hiddenEvery = 3; // of a page that nobody sees, one of so many reads: its title has the count

/**
 * useOpenCount is how many questions of all runs are open, for the link to the inbox and the title of the tab; null: not
 * known. While the inbox is shown, it tells the count.
 */
export function useOpenCount(inInbox: boolean): [number | null, (open: number) => void] {
  const [count, set] = useState<number | null>(null);
  const turn = useRef(0);
  const { data } = useData(inInbox || file ? null : () => (document.hidden && turn.current++ % hiddenEvery ? Promise.resolve(null) : get<Question[]>("/questions")), countEvery, inInbox);
  useEffect(() => { if (data) set(data.length); }, [data]);
  return [count, set];
}

export function Inbox({ run, tell }: { run?: string; tell?: (open: number) => void }) {
  const { data, error, reload } = useData(() => get<Question[]>(run ? url`/runs/${run}/questions` : "/questions"), 2000, run);
  const [deny, setDeny] = useState<Question | null>(null);
  const [reply, setReply] = useState<Question | null>(null);
  const [sign, setSign] = useState<{ q: Question; decision: string; more?: More } | null>(null);
  const [naming, setNaming] = useState(false);
  const [said, setSaid] = useState("");
  const closed = useClosed(data);
  const list = data ?? [], { q, at, choose, step } = useChosen(list), { box, isSettled, hasSettled } = useSettled(list);
  useEffect(() => { if (data) tell?.(data.length); }, [data]);
  const send = async (q: Question, decision: string, more: More = {}) => {
    const by = more.by ? keepName(more.by) : myName();
    try {
      await post(url`/runs/${q.run_id}/answer`, { query: q.query, agent: q.agent, digest: q.digest, decision, ...more, by });
    } finally {
      reload();
    }
    const next = decision === "approve" && needsTwo(q) && !q.approved_by ? "another person must approve it, too" : "the first answer counts";
    setSaid(`${decision}: recorded for ${q.agent_name || q.agent} of ${q.title || q.run_id.slice(0, 10)}, by ${by}; ${next}`);
  };
  const quick = (q: Question, decision: string, more?: More) => {
    if (!myName() || decision === "approve" && needsTwo(q)) setSign({ q, decision, more });
    else send(q, decision, more).catch((e: Error) => setSaid(explainUnsent(e)));
  };
  // What a person has read is what is decided: neither a key nor a click decides a question that has just come or moved.
  const byKey = (act: (q: Question) => void) => () => (!q ? list.length && setSaid("No question is chosen: j and k choose one.") : hasSettled() ? act(q) : setSaid(tooSoon));
  const byClick = (q: Question, act: () => void) => () => (isSettled(keyOf(q)) ? act() : setSaid(tooSoon));
  useKeys({ j: () => step(1), k: () => step(-1), y: byKey((q) => isCall(q) && quick(q, "approve")), a: byKey((q) => isCall(q) && q.rule && quick(q, "approve", { always: "run" })),
    n: byKey(setDeny), r: byKey(setDeny), w: byKey((q) => !isCall(q) && setReply(q)), N: () => setNaming(true) });
  const Box = run ? "div" : "main"; // the view of a run has its main
  return (
    <Box class={run ? "pad" : ""}>
      <div class="bar">{!run && <h1>Inbox</h1>}<span class="quiet">{myName() ? `You answer as ${line(myName(), 80)}.` : "Your name is asked with your first answer."}</span><button onClick={() => setNaming(true)}>{myName() ? "Another name" : "Give your name"} <kbd>N</kbd></button></div>
      <Problem text={error} /><p role="status" class="quiet said-last">{line(said, 500)}</p>
      {data && !list.length && <p class="empty">No open questions.</p>}
      <ol class="cards" ref={box}>
        {list.map((x) => (
          <li key={keyOf(x)} class={keyOf(x) === at ? "card current" : "card"} onFocusIn={() => choose(keyOf(x))} onClick={() => choose(keyOf(x))}>
            <p class="quiet"><Origin q={x} run={run} /> {x.asked_ms ? "asked " + age(x.asked_ms) + " ago" : ""}{x.due_ms ? " · expires " + new Date(x.due_ms).toLocaleTimeString() : ""}</p>
            {needsTwo(x) && <p><strong>{x.approved_by ? `1 of ${x.approvals} approved, by ${line(x.approved_by)}` : `0 of ${x.approvals} approved`}</strong></p>}
            <Diff text={x.question} />
            {x.rule && <p class="quiet">For this run allows: <code>{line(x.rule)}</code></p>}
            <div class="buttons">
              {isCall(x) ? <>
                <button class="primary" onClick={byClick(x, () => quick(x, "approve"))}>Once <kbd>y</kbd></button>
                {x.rule && <button onClick={byClick(x, () => quick(x, "approve", { always: "run" }))}>Always in this run <kbd>a</kbd></button>}
              </> : <button class="primary" onClick={byClick(x, () => setReply(x))}>Answer <kbd>w</kbd></button>}
              <button class="danger" onClick={byClick(x, () => setDeny(x))}>Deny <kbd>n</kbd></button>
            </div>
          </li>
        ))}
      </ol>
      {!!closed.length && <section aria-label="No longer open"><h2>No longer open</h2><ol class="cards">{closed.map((c) => <Answered key={keyOf(c.q)} c={c} run={run} />)}</ol></section>}
      {sign && <Form title={sign.decision === "approve" ? "Approve" : "Answer"} confirm={sign.decision === "approve" ? "Approve" : "Answer"} note={<><Decided q={sign.q} run={run} />{needsTwo(sign.q) && <p class="quiet">{`${sign.q.approvals} different people must approve this call.`}</p>}{sign.more?.always && <p class="quiet">For this run allows: <code>{line(sign.q.rule)}</code></p>}</>} close={() => setSign(null)} fields={[nameField()]} submit={(v) => send(sign.q, sign.decision, { ...sign.more, by: v.by })} />}
      {naming && <Form title="Your name" confirm="Keep" close={() => setNaming(false)} fields={[nameField()]} submit={async (v) => { keepName(v.by); }} />}
      {deny && <Form title="Deny" danger confirm="Deny" note={<Decided q={deny} run={run} />} close={() => setDeny(null)} fields={[{ name: "text", label: "Reason, which the agent reads", type: "area" }, ...nameIfUnknown()]} submit={(v) => send(deny, "deny", v)} />}
      {reply && <Form title="Answer" confirm="Send" note={<Decided q={reply} run={run} />} close={() => setReply(null)} fields={[{ name: "text", label: "Answer", type: "area", required: true }, ...nameIfUnknown()]} submit={(v) => send(reply, "text", v)} />}
    </Box>
  );
}

const settling = 700; // ms
const tooSoon = "The questions have just changed: look again, then decide.";

/** useChosen returns the question that the keys are for, and what chooses another one. The first list chooses its first; once
 * the chosen one is gone, none is chosen until the person chooses, or a key would decide what nobody has read. */
function useChosen(list: Question[]): { q: Question | undefined; at: string; choose: (key: string) => void; step: (by: number) => void } {
  const [at, choose] = useState(""), [stepped, redraw] = useReducer((n: number) => n + 1, 0);
  const place = useRef(-1); // of the chosen one, also once it is gone; -1: nothing was ever chosen
  useLayoutEffect(() => { if (place.current < 0 && list.length) choose(keyOf(list[0])); });
  useLayoutEffect(() => { document.querySelector(".card.current")?.scrollIntoView({ block: "nearest" }); }, [stepped]);
  const now = list.findIndex((q) => keyOf(q) === at);
  if (now >= 0) place.current = now;
  const step = (by: number) => {
    const next = list[Math.max(0, Math.min(list.length - 1, now >= 0 ? now + by : by > 0 ? place.current : place.current - 1))];
    if (next) { choose(keyOf(next)); redraw(0); }
  };
  return { q: list[now], at, choose, step };
}

/** useSettled says of a card whether it has stood where it is for a while, and of the list whether all of it has. */
function useSettled(list: Question[]): { box: { current: HTMLOListElement | null }; isSettled: (key: string) => boolean; hasSettled: () => boolean } {
  const box = useRef<HTMLOListElement>(null), moved = useRef(new Map<string, { top: number; at: number }>()), changed = useRef({ keys: "", at: 0 });
  useLayoutEffect(() => {
    const now = performance.now(), before = moved.current, keys = list.map(keyOf);
    moved.current = new Map(keys.map((key, i) => {
      const top = (box.current!.children[i] as HTMLElement).offsetTop, old = before.get(key);
      return [key, old && Math.abs(old.top - top) < 2 ? old : { top, at: now }];
    }));
    if (changed.current.keys !== keys.join("\n")) changed.current = { keys: keys.join("\n"), at: now };
    const left = settling - now + Math.max(changed.current.at, ...[...moved.current.values()].map((m) => m.at));
    box.current!.classList.toggle("settled", left <= 0);
    if (left <= 0) return;
    const timer = setTimeout(() => box.current?.classList.add("settled"), left + 10);
    return () => clearTimeout(timer);
  });
  const isOver = (at: number): boolean => performance.now() - at >= settling;
  return { box, isSettled: (key) => isOver(moved.current.get(key)?.at ?? Infinity), hasSettled: () => isOver(changed.current.at) };
}

// Decided is what a dialog decides about.
const Decided = ({ q, run }: { q: Question; run?: string }) => <><p class="quiet"><Origin q={q} run={run} /></p><Diff text={q.question} /></>;

// Origin is whose question it is: the agent by its name and id, and the run by its title, unless the view is that of the run.
const Origin = ({ q, run }: { q: Question; run?: string }) => <>
  {!run && <><a href={"#/run/" + q.run_id}>{line(q.title, 80) || q.run_id.slice(0, 10)}</a> · </>}
  <a href={`#/run/${q.run_id}/transcript/${q.agent}`}>{line(q.agent_name, 40) || line(q.agent)}</a>{q.agent_name ? <> <small>{line(q.agent)}</small></> : ""} · <Badge state={q.reason} /></>;

// Closed is a question that this tab has shown and that is no longer open, with its answers in their order; null: not known yet.
// `tries` counts the reads that found no answer, `failed` says why the last read failed, and `final` that the next one would, too.
interface Closed { q: Question; answers: Reply[] | null; tries: number; reading: boolean; failed: string; final: boolean }
interface Reply { decision: string; always: string; by: string; at: string; text: string; missing: number }

const closedMax = 20;
const triesMax = 10;
const askedSlack = 2000; // the log of the run may have the question a little after that of the agent

/** useClosed returns the questions that were open in this tab and are not now, the newest first, with who answered them. */
function useClosed(open: Question[] | null): Closed[] {
  const list = useRef<Closed[]>([]), before = useRef<Question[]>([]);
  const [, redraw] = useReducer((n: number) => n + 1, 0);
  useEffect(() => {
    if (!open) return;
    const now = new Set(open.map(keyOf));
    const gone = before.current.filter((q) => !now.has(keyOf(q)));
    before.current = open;
    const added: Closed[] = gone.map((q) => ({ q, answers: null, tries: 0, reading: false, failed: "", final: false }));
    list.current = [...added, ...list.current.filter((c) => !now.has(keyOf(c.q)))].slice(0, closedMax);
    redraw(0);
    // A read may take longer than the questions stay the same: it goes on, and its result counts.
    for (const c of list.current) if (!c.answers && !c.reading && !c.final && c.tries < triesMax) void readInto(c).then(() => redraw(0));
  }, [open]);
  return list.current;
}

// readInto reads the answers to a closed question. A read that fails says nothing about them.
async function readInto(c: Closed): Promise<void> {
  c.reading = true;
  try {
    c.answers = await readAnswers(c.q);
    c.failed = "";
    c.tries++;
  } catch (e) {
    c.failed = explain(e);
    c.final = isFinal(e);
  }
  c.reading = false;
}

// readAnswers reads the answers to a question from the events of its agent; null: they have none yet.
async function readAnswers(q: Question): Promise<Reply[] | null> {
  const found: Reply[] = [];
  for (let cursor = "", more = true; more;) {
    const page = await get<{ events: Event[]; cursor: string; more: boolean }>(url`/runs/${q.run_id}/events?kind=query.answered&agent=${q.agent}&limit=10000&cursor=${cursor}`);
    for (const { agent, ts, data: d } of page.events) {
      if (agent !== q.agent || d?.query !== q.query || q.digest && d.digest !== q.digest || q.asked_ms && Date.parse(ts) < q.asked_ms - askedSlack) continue;
      found.push({ decision: d.decision, always: d.always ?? "", by: d.by ?? "", at: ts, text: d.why ?? "", missing: d.missing_approvals ?? 0 });
    }
    cursor = page.cursor;
    more = page.more;
  }
  const last = found.at(-1);
  if (!last || last.missing) return null;
  if (last.decision === "text" && !last.text) last.text = await readResult(q);
  return found;
}

// readResult is the answer to a question of an agent as its transcript has it.
async function readResult(q: Question): Promise<string> {
  if (!q.call) return "";
  const t = await get<Transcript>(url`/runs/${q.run_id}/transcript?agent=${q.agent}`);
  return t.messages.flatMap((m) => m.results ?? []).find((r) => r.call === q.call)?.text ?? "";
}

function Answered({ c, run }: { c: Closed; run?: string }) {
  return (
    <li class="card closed">
      <p class="quiet"><Origin q={c.q} run={run} /></p>
      {c.answers?.map((a, i) => <p key={a.at}><strong>{a.missing ? `Approved by ${line(a.by)}` : `${i ? "" : "First answer: "}${line(decided(a))}, by ${line(a.by) || "somebody"}`}</strong> at <time>{new Date(a.at).toLocaleTimeString()}</time>{a.text && <>: {line(a.text, 300)}</>}</p>)}
      {!c.answers && <p class="quiet">{c.failed ? `Its answer could not be read: ${line(c.failed, 300)}` : c.tries < triesMax ? "Its answer is being read." : "It was closed without an answer."}</p>}
      <details><summary>The question</summary><Diff text={c.q.question} /></details>
    </li>
  );
}

// decided is an answer in words.
const decided = (a: Reply): string => (words[a.decision] ?? a.decision) + (a.decision !== "approve" || !a.always ? "" : a.always === "run" ? " for this run" : " for later runs in its directory, too");

const words: Record<string, string> = { approve: "approved", deny: "denied", skip: "skipped", text: "a text" };

const keyOf = (q: Question): string => `${q.run_id} ${q.agent} ${q.query} ${q.digest ?? ""} ${q.approvals ? "" : q.asked_ms ?? ""}`;

const needsTwo = (q: Question): boolean => (q.approvals ?? 0) > 1;

const isCall = (q: Question | undefined): boolean => !!q && (!!q.digest || !!q.call && q.reason !== "needs_human");
