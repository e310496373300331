// Texts of models, tools and people are shown as text nodes only. This file makes what is invisible in them
// visible, bounds them, and formats figures.

// Control characters (newline and tab stay), format characters (bidi controls, zero width, tags) and others that are not
// seen, other than the joiners that scripts and emoji need and the selectors of the two forms of an emoji; line and paragraph
// separators, private use, lone surrogates. It is the set of internal/term/clean.go.
import type { Result, Spend } from "./api";
const harmful = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\u2800\p{Co}\p{Cs}]|(?![\u200c\u200d\ufe0e\ufe0f])[\p{Cf}\p{Variation_Selector}\p{Default_Ignorable_Code_Point}]/gu;

const escape = (text: string): string => text.replace(harmful, (c) => {
  const n = c.codePointAt(0)!;
  return n < 0x80 ? "\\x" + n.toString(16).padStart(2, "0") : n <= 0xffff ? "\\u" + n.toString(16).padStart(4, "0") : "\\U" + n.toString(16).padStart(8, "0");
});

/** json is a document as people read it, whose harmful characters are escapes of JSON. */
export const json = (doc: unknown): string => JSON.stringify(doc, null, 1).replace(harmful, (c) => [...Array(c.length).keys()].map((i) => "\\u" + c.charCodeAt(i).toString(16).padStart(4, "0")).join(""));

const textOf = (text: unknown): string => (typeof text === "string" ? text : text == null ? "" : String(text));

// cut is the beginning of a text of at most max characters; no pair of surrogates is cut in two.
const cut = (s: string, max: number): string => s.slice(0, /[\ud800-\udbff]/.test(s[max - 1] ?? "") ? max - 1 : max);

/** clean makes harmful characters of a text visible, and shortens it to a number of characters. */
export function clean(text: unknown, max = 20000): string {
  const s = textOf(text);
  if (s.length <= max) return escape(s);
  const kept = cut(s, max);
  return `${escape(kept)}\n… ${s.length - kept.length} more characters are not shown`;
}

/** line is clean for one line: what is longer ends with …. */
export function line(text: unknown, max = 200): string {
  const s = textOf(text), isLong = s.length > max;
  return escape(isLong ? cut(s, max - 1) : s).replace(/\s+/g, " ").trim() + (isLong ? "…" : "");
}

/** gist is what a question is about, for a place with little room: of a call what it would do. */
export function gist(question: string): string {
  const text = question.trim(), shows = text.startsWith(callQuestion) ? text.slice(callQuestion.length) : text;
  const file = shows !== text && shows.startsWith("--- ") && /\n\+\+\+ ([^\n]*)/.exec(shows)?.[1];
  return file ? "write " + file : shows.replace(/\r\n|\r|\n/g, " ⏎ ");
}
const callQuestion = "May this run?\n"; // the first line of a question about a call

/** modelName is the route of a model as people read it: the path of a script has one slash before it. */
export const modelName = (route: unknown, max = 80): string => line(route, max).replace(/^script\/\//, "script/");

// Figures are formatted as the commands do it (internal/term/figures.go); internal/term/testdata/figures.json has the cases of
// both. A half is rounded up: the formatters of Go and of browsers differ there.
const rounded = (n: number, unit: number): number => Math.floor(n / unit + 0.5);

export function tokens(n: number | undefined): string {
  if (!n) return "0";
  if (n < 1000) return String(n);
  const k = rounded(n, 100);
  return k < 1e4 ? k / 10 + "k" : rounded(n, 1e5) / 10 + "M";
}

export function usd(n: number | undefined): string {
  if (!n) return "$0";
  return "$" + (n < 0.01 ? (Math.floor(n * 1e4 + 0.5) / 1e4).toFixed(4) : (Math.floor(n * 1e2 + 0.5) / 1e2).toFixed(2));
}

export function took(ms: number): string {
  if (ms < 1000) return Math.max(0, Math.floor(ms)) + "ms";
  const tenths = rounded(ms, 100);
  if (tenths < 600) return (tenths / 10).toFixed(1) + "s";
  const m = Math.max(1, Math.floor(ms / 60000)); // 59.96s
  return m < 60 ? `${m}m${String(ms < 60000 ? 0 : Math.floor((ms % 60000) / 1000)).padStart(2, "0")}s` : `${Math.floor(m / 60)}h${String(m % 60).padStart(2, "0")}m`;
}

export function age(stamp: string | number | undefined): string {
  const at = typeof stamp === "number" ? stamp : Date.parse(stamp ?? "");
  if (!at) return "";
  const s = Math.max(0, (Date.now() - at) / 1000);
  return s < 60 ? Math.floor(s) + "s" : s < 3600 ? Math.floor(s / 60) + "m" : s < 172800 ? Math.floor(s / 3600) + "h" : Math.floor(s / 86400) + "d";
}

/** spent is what a run has spent of its limits; "~" marks list prices of models behind a gateway. */
export function spent(s: Spend | undefined, unit = ""): string {
  if (!s) return "";
  const b = s.budget;
  const used = tokens(b.used) + (b.limit ? " of " + tokens(b.limit) : "") + unit;
  if (!s.cost_usd && !b.limit_usd) return used;
  const money = s.cost_known ? (s.cost_estimated ? "~" : "") + usd(s.cost_usd) : s.cost_usd ? "at least " + usd(s.cost_usd) : "cost unknown";
  return used + " · " + money + (b.limit_usd ? " of " + usd(b.limit_usd) : "") + (b.reserved_usd ? ` (${usd(b.reserved_usd)} held)` : "");
}

/** reasonText is a stop reason as people read it: of a cancel it says where it ended the agent, too, in the words of the commands. */
export const reasonText = (reason: string): string => reasons[reason] ?? reason.replace(/_/g, " ");
const reasons: Record<string, string> = { aborted_tools: "canceled (tool aborted)", aborted_streaming: "canceled (at a model call)" };

/** spendOf is the spend of a run that has ended, or of one at work as its last published state says. */
export function spendOf(r: Result | null | undefined, live?: Spend): Spend | undefined {
  return r ? { cost_usd: r.total_cost_usd, cost_known: r.cost_known, cost_estimated: r.cost_estimated, budget: r.budget } : live;
}
