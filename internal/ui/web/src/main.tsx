import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { comeBack, isRunId, onRefusedSession, owner, signIn, signInWithToken, signOut, whenSignedIn } from "./api";
import { Cluster } from "./cluster";
import { Runs } from "./runs";
import { Inbox, useOpenCount } from "./inbox";
import { Run, tabs } from "./run";
import { Compare } from "./compare";
import { explainUnsent, go, Problem, useKeys } from "./parts";
import { line } from "./text";
import { file } from "./file";

const help: [string, string][] = [["?", "this help"], ["g r", "runs"], ["g i", "inbox"], ["g c", "nodes"], ["j k ↑ ↓", "move in a list"], ["Enter", "open"], ["/", "search"], ["n", "start a run (in runs)"], ["m c", "show older runs, clear the filters (in runs)"],
  ["1 … 9", "views of a run"], ["f", "fork after the last turn (in a transcript)"], ["v", "compare with another run"], ["s", "steer"], ["b", "budget"], ["x", "cancel"], ["e", "unfold tool calls"], ["y a n w", "approve once, always in this run, deny, answer"], ["N", "give the name with which you answer"], ["[ ]", "page of log entries before, after"], ["+ - 0 ← →", "zoom and move the timeline"], [". , j k", "choose a span, an agent (in the timeline)"], ["d", "drain or resume a node (in nodes)"], ["Esc", "close a dialog, leave the search"]];
const fileHelp: [string, string][] = [["?", "this help"], ["j k ↑ ↓", "move in a list"], ["Enter", "open"], ["1 2 3 5 6 7 8", "views of the run"], ["e", "unfold tool calls (in a transcript)"], ["/", "search (in events)"], ["+ - 0 ← →", "zoom and move the timeline"], [". , j k", "choose a span, an agent (in the timeline)"], ["o", "transcript of the agent of a span (in the timeline)"], ["Esc", "close a message, leave the search"]];

function App() {
  const [hash, setHash] = useState(location.hash);
  const [keys, setKeys] = useState(false);
  const [went, setWent] = useState(false);
  useEffect(() => { const on = () => setHash(location.hash); addEventListener("hashchange", on); return () => removeEventListener("hashchange", on); }, []);
  const jump = (to: string) => () => { if (went) { setWent(false); go(to); } };
  const map: Record<string, () => void> = { "?": () => setKeys(!keys) };
  if (keys) map.Escape = () => setKeys(false);
  if (!file) map.g = () => { setWent(true); setTimeout(() => setWent(false), 1200); };
  if (went) Object.assign(map, { r: jump("#/runs"), i: jump("#/inbox"), c: jump("#/nodes") });
  useKeys(map, true); // r after g is no r of the view
  const [path] = hash.split("?"); // what follows are the filters of the runs
  const [, view, run = "", tab = "", agent = ""] = path.split("/");
  const id = file ? file.info.run_id : run;
  const [open, tellOpen] = useOpenCount(view === "inbox");
  useEffect(() => { if (!file) document.title = open ? `(${open}) troupe` : "troupe"; }, [open]);
  return (
    <>
      <header><a class="skip" href={hash || "#/runs"} onClick={(e) => { e.preventDefault(); (document.querySelector<HTMLElement>("main .rows") ?? document.querySelector<HTMLElement>("main [tabindex], main a, main button"))?.focus(); }}>To the content</a>
        <strong>troupe</strong>
        {!file && <nav aria-label="Pages"><a href="#/runs" aria-current={view !== "inbox" && view !== "nodes" ? "page" : undefined}>Runs</a><a href="#/inbox" aria-current={view === "inbox" ? "page" : undefined}>Inbox{open ? <> <span class="badge s-parked">{open} open</span></> : null}</a><a href="#/nodes" aria-current={view === "nodes" ? "page" : undefined}>Nodes</a></nav>}
        {!file && owner() && <span class="quiet">as <b>{line(owner(), 40)}</b></span>}
        <button class="help" aria-expanded={keys} onClick={() => setKeys(!keys)}>Keys <kbd>?</kbd></button></header>
      {keys && <aside class="keys" aria-label="Keys"><dl>{(file ? fileHelp : help).map(([k, what]) => <div key={k}><dt><kbd>{k}</kbd></dt><dd>{what}</dd></div>)}</dl></aside>}
      {!file && (view === "run" || view === "compare") && !(isRunId(run) && (view === "run" || isRunId(tab))) ? <main><p class="empty">There is no such run: the id of a run has letters and digits only.</p></main> : file || view === "run" ? <Run key={id} run={id} tab={(tabs as readonly string[]).includes(tab) ? tab : "tree"} agent={agent} /> : view === "inbox" ? <Inbox tell={tellOpen} /> : view === "nodes" ? <Cluster /> : view === "compare" ? <Compare key={hash} a={run} b={tab} /> : <Runs />}
    </>
  );
}

function SignIn({ why }: { why: string }) {
  const [error, setError] = useState(why);
  return (
    <main class="signin"><h1>troupe</h1>
      <p>Run <code>troupe ui</code> on the machine of this node and open the address that it prints. It is valid once. Or give the token of the node:</p>
      <form onSubmit={(e) => { e.preventDefault(); const t = String(new FormData(e.currentTarget).get("token")); signInWithToken(t).then(start, (x) => setError(explainUnsent(x))); }}>
        <label>Token <input name="token" type="password" autocomplete="off" required /></label> <button class="primary" type="submit">Open</button>
      </form>
      <Problem text={error} /></main>
  );
}

const place = document.getElementById("app")!;
function start(): void { render(<App />, place); }

// ask shows the sign-in in place of the page. The address stays, and the page goes on there; also if the person signs in in another tab.
function ask(why: string): void {
  whenSignedIn(start);
  render(<SignIn why={why} />, place);
}

// askReplace asks whether the session of a link takes the place of one of another owner.
function askReplace(now: string, next: string): Promise<boolean> {
  return new Promise((done) => {
    const who = (name: string) => (name ? <><b>{line(name, 40)}</b>, who sees the runs of that owner only</> : <><b>an operator</b>, who sees the runs of all</>);
    render(
      <main class="signin"><h1>Sign in as somebody else?</h1>
        <p>This browser works as {who(now)}. The link that you opened signs this tab in as {who(next)}: what you start, answer and write here is then theirs. Go on only if the link is your own.</p>
        <div class="buttons"><button class="primary" onClick={() => done(false)}>Stay {now ? `as ${line(now, 40)}` : "an operator"}</button><button class="danger" onClick={() => done(true)}>{next ? `Work as ${line(next, 40)}` : "Work as an operator"}</button></div></main>, place);
  });
}

// A link of `troupe ui` that is pasted into an open page signs in anew.
addEventListener("hashchange", (e) => { if (location.hash.startsWith("#ticket=")) { comeBack(new URL(e.oldURL).hash); location.reload(); } });
onRefusedSession(ask);
if (file) start();
else signIn(askReplace).then((ok) => (ok ? start() : ask("")), (e) => { signOut(); ask(explainUnsent(e)); });
