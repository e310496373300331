// Parts that several views share.
import { useEffect, useLayoutEffect, useReducer, useRef, useState } from "preact/hooks";
import { Fragment, type ComponentChildren } from "preact";
import { Refused, isFinal, newID } from "./api";
import { clean, line, reasonText } from "./text";
import type { Figure } from "./amount";

export const go = (hash: string): void => { location.hash = hash; };

/** useData reads something now, again after a time, and whenever `again` changes. */
export function useData<T>(read: (() => Promise<T>) | null, every: number, again: unknown): { data: T | null; error: string; behind: boolean; reload: () => void } {
  const [state, set] = useState<{ data: T | null; error: string; behind: boolean }>({ data: null, error: "", behind: false });
  const [turn, reload] = useReducer((n: number) => n + 1, 0);
  useEffect(() => {
    let over = false, timer = 0;
    const tick = async () => {
      if (!read) return;
      let isBehind = false;
      try {
        const data = await read();
        if (!over) set({ data, error: "", behind: false });
      } catch (e) {
        if (!over) set((s) => ({ data: s.data, error: explain(e), behind: true }));
        if (isFinal(e)) return;
        isBehind = true;
      }
      if (!over && (every || isBehind)) timer = window.setTimeout(tick, every || againEvery);
    };
    void tick();
    return () => { over = true; clearTimeout(timer); };
  }, [again, turn, every]);
  return { ...state, reload: () => reload(0) };
}

const againEvery = 2000; // ms; after a read that failed, of what is read once

export function explain(e: unknown): string {
  if (e instanceof Refused) return e.message + (e.hint ? " — " + e.hint : "");
  return e instanceof TypeError ? "the node does not answer; trying again" : String(e);
}

/** explainUnsent is explain for what a person has sent: nothing sends it again but the person. What is sent again from the same
 * form has the same id, and an answer the same question. */
export const explainUnsent = (e: unknown): string => (e instanceof TypeError ? "The node does not answer: this may have been done or not. Send it again when the node is back; it is done once at most." : explain(e));

/** Text shows a foreign text as it is. */
export const Text = ({ text, max }: { text: unknown; max?: number }) => <pre class="text">{clean(text, max)}</pre>;

/** Badge is a state or a stop reason; in a narrow column a cancel is only that. */
export const Badge = ({ state, narrow }: { state: string; narrow?: boolean }) => <span class={"badge s-" + state.replace(/[^a-z_]/g, "")} title={line(reasonText(state))}>{line(narrow ? reasonText(state).split(" (")[0] : reasonText(state))}</span>;

export const Problem = ({ text }: { text: string }) => (text ? <p class="problem" role="alert">{line(text, 500)}</p> : null);

/** Diff shows the lines of a text, those of a diff in colour. */
export function Diff({ text }: { text: string }) {
  const lines = clean(text).split("\n");
  return <pre class="text diff">{lines.map((l, i) => <span key={i} class={l.startsWith("+") ? "add" : l.startsWith("-") ? "del" : l.startsWith("@@") ? "hunk" : ""}>{l + "\n"}</span>)}</pre>;
}

const fields = /^(INPUT|TEXTAREA|SELECT)$/;

// isForPage reports whether a key is for the page: no field has the focus, no dialog is open, and nobody has used it.
const isForPage = (e: KeyboardEvent): boolean => !(e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey || fields.test((e.target as HTMLElement).tagName) || document.querySelector("dialog[open]"));

/** leaveField is a handler of keys of a field above a list: Escape leaves it, and Enter does what is done with the list. */
export const leaveField = (enter?: () => void) => (e: KeyboardEvent): void => {
  if (e.key !== "Escape" && !(e.key === "Enter" && enter)) return;
  e.preventDefault();
  (e.currentTarget as HTMLElement).blur();
  if (e.key === "Enter") enter!();
};

/** Rows is the list of a view: rows of equal height, of which only the visible ones exist. Arrow keys, j and k move, also before the
 * list has the focus; what has it otherwise keeps the keys that it understands: Enter of a link, the arrows of a part that scrolls. */
export function Rows<T>({ rows, id, label, open, row, selected, select, height = 30 }: { rows: T[]; id: (r: T) => string; label: string; row: (r: T) => ComponentChildren; open: (r: T) => void; selected: string; select: (id: string) => void; height?: number }) {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [tall, setTall] = useState(600);
  useLayoutEffect(() => {
    const el = box.current!;
    const measure = () => setTall(el.clientHeight || 600);
    const watch = new ResizeObserver(measure);
    watch.observe(el);
    measure();
    return () => watch.disconnect();
  }, []);
  const first = Math.max(0, Math.floor(top / height) - 8), last = Math.min(rows.length, Math.ceil((top + tall) / height) + 8);
  const at = rows.findIndex((r) => id(r) === selected);
  const move = (to: number) => {
    const n = Math.max(0, Math.min(rows.length - 1, to));
    if (!rows[n]) return;
    select(id(rows[n]));
    const el = box.current!;
    if (n * height < el.scrollTop) el.scrollTop = n * height;
    if ((n + 1) * height > el.scrollTop + el.clientHeight) el.scrollTop = (n + 1) * height - el.clientHeight;
  };
  const key = (e: KeyboardEvent) => {
    const el = box.current!, on = e.target as HTMLElement, isFree = el.contains(on) || on === document.body;
    if (!isForPage(e) || !isFree && !(on.matches("a, button") && /^(j|k|Arrow)/.test(e.key)) && !/^[jk]$/.test(e.key)) return;
    const steps: Record<string, number> = { ArrowDown: at + 1, j: at + 1, ArrowUp: at - 1, k: at - 1, Home: 0, End: rows.length - 1, PageDown: at + 20, PageUp: at - 20 };
    if (e.key in steps) { move(steps[e.key]); el.focus({ preventScroll: true }); }
    else if (e.key === "Enter" && rows[at]) open(rows[at]);
    else return;
    e.preventDefault();
  };
  useWindowKeys(key);
  return (
    <div class="rows" ref={box} tabIndex={0} role="listbox" aria-label={label} aria-activedescendant={at >= 0 ? "row-" + selected : undefined} onScroll={(e) => setTop(e.currentTarget.scrollTop)}>
      <div role="presentation" style={{ height: rows.length * height + "px", position: "relative" }}>
        {rows.slice(first, last).map((r, i) => (
          <div key={id(r)} id={"row-" + id(r)} role="option" aria-selected={id(r) === selected} aria-posinset={first + i + 1} aria-setsize={rows.length} class="row" style={{ top: (first + i) * height + "px", height: height + "px" }}
            onClick={() => { select(id(r)); open(r); }}>{row(r)}</div>
        ))}
      </div>
    </div>
  );
}

/** Field is one of a form: `empty` and `none` say what holds if nothing is given or chosen; `below` stands below it. The value of a field
 * with a `figure` is its amount, written as a number. */
export interface Field { name: string; label: string; type?: string; value?: string; options?: string[]; required?: boolean; empty?: string; none?: string; min?: number; figure?: Figure; checks?: { value: string; label: string }[]; below?: ComponentChildren }

// valuesOf are the values of a form by their names; several of one name have lines of their own.
function valuesOf(form: HTMLFormElement): Record<string, string> {
  const v: Record<string, string> = {};
  new FormData(form).forEach((x, k) => { v[k] = k in v ? v[k] + "\n" + x : String(x); });
  return v;
}

/** readFigures puts numbers in place of the amounts of a filled form, and throws for a text that is none. */
function readFigures(v: Record<string, string>, fields: Field[]): Record<string, string> {
  const out = { ...v };
  for (const { name, label, figure } of fields) {
    const text = v[name]?.trim();
    if (!figure || text === undefined) continue;
    const n = text ? figure.parse(text) : 0;
    if (Number.isNaN(n)) throw new Refused(400, `${label}: ${line(text, 40)} is not ${figure.expected}`, "");
    out[name] = text && String(n);
  }
  return out;
}

/** Form asks for something in a dialog, and shows why it was refused. `changed` hears of choices. */
export function Form({ title, fields, confirm, danger, note, submit, close, changed }: { changed?: (v: Record<string, string>) => void; title: string; fields: Field[]; confirm: string; danger?: boolean; note?: ComponentChildren; submit: (v: Record<string, string>, id: string) => Promise<void>; close: () => void }) {
  const box = useRef<HTMLDialogElement>(null);
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  // The request that was sent last. The same values have the same id, and are done once, however often they are sent because a reply
  // was lost; others are another request.
  const sent = useRef({ id: "", values: "" });
  useEffect(() => { box.current?.showModal(); }, []);
  const send = async (e: SubmitEvent) => {
    e.preventDefault();
    setBusy(true);
    try {
      const read = readFigures(valuesOf(e.target as HTMLFormElement), fields), values = JSON.stringify(read);
      if (!sent.current.id || sent.current.values !== values) sent.current = { id: newID(), values };
      await submit(read, sent.current.id);
      close();
    } catch (problem) {
      setError(explainUnsent(problem));
      setBusy(false);
    }
  };
  useEffect(() => { if (error) [...(box.current?.querySelectorAll("form > .problem") ?? [])].at(-1)?.scrollIntoView({ block: "nearest" }); }, [error, busy]);
  return (
    <dialog ref={box} onClose={close} aria-labelledby="form-title" onKeyDown={(e) => e.stopPropagation()}>
      <form onSubmit={send} onChange={(e) => changed?.(valuesOf(e.currentTarget))}>
        <h2 id="form-title">{title}</h2>
        {note}
        {fields.map((f) => f.checks ? (
          <fieldset key={f.name}><legend>{f.label}</legend>{f.checks.map((c) => <label key={c.value} class="inline"><input type="checkbox" name={f.name} value={c.value} defaultChecked />{line(c.label, 80)}</label>)}</fieldset>
        ) : (<Fragment key={f.name}>
          <label>{f.label}
            {f.type === "area" ? <textarea name={f.name} rows={4} required={f.required}>{f.value}</textarea>
              : f.options ? <select name={f.name}>{f.options.map((o) => <option key={o} value={o} selected={!!f.value && o === f.value}>{line(o) || (f.none ? `default: ${f.none}` : "default")}</option>)}</select>
              : <input name={f.name} type={f.type ?? "text"} defaultValue={f.value} placeholder={f.empty ? `default: ${f.empty}` : undefined} inputMode={f.figure ? "decimal" : undefined} min={f.min} required={f.required} step="any" autocomplete="off" />}
          </label>
          {f.below}
        </Fragment>))}
        <Problem text={error} />
        <div class="buttons"><button type="submit" class={danger ? "danger" : "primary"} disabled={busy}>{confirm}</button><button type="button" onClick={() => box.current?.close()}>Close</button></div>
      </form>
    </dialog>
  );
}

/** useKeys handles keys of the whole page while no field has the focus; those that come first are not seen by other views. */
export function useKeys(keys: Record<string, () => void>, first = false): void {
  useWindowKeys((e) => {
    const act = isForPage(e) && keys[e.key];
    if (act) { e.preventDefault(); act(); }
  }, first);
}

// useWindowKeys has keys from the moment at which its view is drawn: an effect after the paint would lose the keys of a fast person.
function useWindowKeys(press: (e: KeyboardEvent) => void, first = false): void {
  const now = useRef(press);
  now.current = press;
  useLayoutEffect(() => {
    const on = (e: KeyboardEvent) => now.current(e);
    addEventListener("keydown", on, first);
    return () => removeEventListener("keydown", on, first);
  }, []);
}
