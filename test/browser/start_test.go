//go:build browser

package browser

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// painter is an agent of the user, whose definition fills the form.
const painter = `---
name: painter
description: Paints one thing.
tools: Read, Glob, Bash(git:*), Bash(ls:*)
model: MODEL
effort: low
maxTurns: 7
x-troupe:
  budget: {tokens: 12000}
  timeout: 2m
  delegates: []
  criteria: ["It is green."]
  output_schema: {type: object, properties: {colour: {type: string}}, required: [colour], additionalProperties: false}
---
You paint.
`

// A person starts a run from the form of an agent by the keyboard: the form shows what its definition says, the run has what the
// form said, and it is found by filters that the address holds.
func TestPersonStartsARunFromTheFormOfAnAgent(t *testing.T) {
	settings := t.TempDir()
	script := filepath.Join(t.TempDir(), "script.yaml")
	agents := filepath.Join(settings, "troupe", "agents")
	if err := os.MkdirAll(agents, 0o700); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{script: "default: [{text: '{\"colour\":\"green\"}'}]\n", filepath.Join(agents, "painter.md"): strings.Replace(painter, "MODEL", "script/"+script, 1)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := newStage(t, "XDG_CONFIG_HOME="+settings)
	s.signIn()
	s.do("the agents cannot be read at first", chromedp.Evaluate(`{ const real = fetch; window.failing = true; window.fetch = (path, more) => failing && String(path).endsWith("/agents") ? Promise.reject(new TypeError("down")) : real(path, more); }`, nil),
		press("n"), s.sees("The agents of the node could not be read"), chromedp.Evaluate(`failing = false`, nil), s.sees("Investigates a directory"), s.lacks("could not be read"), press(kb.Escape), chromedp.WaitNotPresent("dialog"))
	s.do("the form, by its key", press("n"), chromedp.WaitVisible("dialog textarea[name=prompt]"), s.sees("Investigates a directory"))
	s.do("the task and the agent, by keys", press("paint <b>the fence</b>"), press(kb.Tab), press("painter"), s.sees("Paints one thing."))
	s.do("what its definition says", s.sees("12k tokens"), s.sees("nobody"), s.sees("It is green."), s.sees("Its answer satisfies a JSON Schema: colour"), s.sees("default: low"))
	placeholders := map[string]string{"max_turns": "default: 7", "max_tokens": "default: 120000", "minutes": "default: 2", "model": "default: builtin/scout"}
	for name, want := range placeholders {
		var got string
		s.do(name, chromedp.Evaluate(`document.querySelector("dialog input[name=`+name+`]").placeholder`, &got))
		if got != want {
			t.Errorf("the field %s shows %q, not %q", name, got, want)
		}
	}
	var boxes int
	if s.do("one box for the two rules of the shell", chromedp.Evaluate(`document.querySelectorAll("dialog input[name=tools]").length`, &boxes)); boxes != 3 {
		t.Errorf("%d boxes for 3 tools", boxes)
	}
	s.checkView("start")
	s.tabTo(`e.name === "dir"`)
	s.do("a directory", press(s.work))
	s.tabTo(`e.name === "max_turns"`)
	s.do("turns", press("5"))
	s.tabTo(`e.value === "shell"`)
	s.do("without the shell", press(" "), chromedp.Poll(`!document.activeElement.checked`, nil))
	s.tabTo(`e.type === "submit"`)
	s.do("start", press(kb.Enter), chromedp.WaitNotPresent("dialog"))
	s.do("the run is shown, and ends", chromedp.Poll(`document.querySelector(".status.ended")`, nil), s.sees("paint <b>the fence</b>"), press("3"), s.sees(`{"colour":"green"}`))
	var run struct {
		RunID       string `json:"run_id"`
		Description struct {
			Agents []struct {
				Name  string
				Tools []string
			}
		}
	}
	described := s.cli("describe", "last", "-o", "json")
	if err := json.Unmarshal([]byte(described), &run); err != nil || len(run.Description.Agents) != 1 || run.Description.Agents[0].Name != "painter" {
		t.Fatalf("%v %s", err, described)
	}
	tools := strings.Join(run.Description.Agents[0].Tools, " ")
	if strings.Contains(tools, "shell") || !strings.Contains(tools, "glob") {
		t.Errorf("the agent has %s", tools)
	}
	s.filterRuns(run.RunID, script)
}

// A reply that is lost leaves open whether the request was carried out. Sent again from the same form it is carried out
// once: one run, one message.
func TestRequestWhoseReplyWasLostIsDoneOnce(t *testing.T) {
	s := newStage(t)
	s.signIn()
	s.do("the replies to requests are lost", chromedp.Evaluate(`{ const real = fetch; window.losing = true; window.fetch = async (path, more) => { const r = await real(path, more); if (losing && more?.method === "POST") throw new TypeError("lost"); return r; }; }`, nil))
	losing := func(yes string) chromedp.Action { return chromedp.Evaluate("losing = "+yes, nil) }
	s.do("a run whose reply is lost", press("n"), chromedp.WaitVisible("dialog textarea"), s.sees("Investigates a directory"), press("errors in app.log"), chromedp.Click("dialog button[type=submit]"), s.sees("may have been done or not"))
	s.do("sent again", losing("false"), chromedp.Click("dialog button[type=submit]"), chromedp.WaitVisible("nav.tabs"), chromedp.WaitNotPresent("dialog"))
	var runs []struct {
		RunID string `json:"run_id"`
	}
	if list := s.cli("list", "-o", "json"); json.Unmarshal([]byte(list), &runs) != nil || len(runs) != 1 {
		t.Errorf("one form has begun %s", list)
	}
	run := s.start(s.script("agents:\n  assistant:\n    - calls: [{name: ask_human, args: {question: \"Which colour?\"}}]\n    - text: done\n"), "paint")
	s.do("a message whose reply is lost", chromedp.Evaluate(`location.hash = `+quote("#/run/"+run+"/questions"), nil), s.sees("Which colour?"), losing("true"), press("s"), chromedp.WaitVisible("dialog textarea"), press("use green"), chromedp.Click("dialog button[type=submit]"), s.sees("may have been done or not"))
	s.do("sent again", losing("false"), chromedp.Click("dialog button[type=submit]"), chromedp.WaitNotPresent("dialog"))
	var open []struct{ Query string }
	if list := s.cli("questions", run, "-o", "json"); json.Unmarshal([]byte(list), &open) != nil || len(open) != 1 {
		t.Fatalf("questions: %s", list)
	}
	s.cli("answer", run, open[0].Query, "green")
	s.cli("result", "--wait", run)
	if n := strings.Count(s.cli("transcript", run), "use green"); n != 1 {
		t.Errorf("the agent has read the message %d times:\n%s", n, s.cli("transcript", run))
	}
}

// A form whose text was edited after a lost reply sends another request: both texts are done. Under the id of the first one,
// the second would be dropped.
func TestFormThatWasEditedAfterALostReplySendsAnotherRequest(t *testing.T) {
	s := newStage(t)
	s.signIn()
	run := s.start(s.script("agents:\n  assistant:\n    - calls: [{name: ask_human, args: {question: \"Which colour?\"}}]\n    - text: done\n"), "paint")
	s.do("the replies to requests are lost", chromedp.Evaluate(`{ const real = fetch; window.losing = true; window.fetch = async (path, more) => { const r = await real(path, more); if (losing && more?.method === "POST") throw new TypeError("lost"); return r; }; }`, nil))
	s.do("a message whose reply is lost", chromedp.Evaluate(`location.hash = `+quote("#/run/"+run+"/questions"), nil), s.sees("Which colour?"), press("s"), chromedp.WaitVisible("dialog textarea"), press("use green"), chromedp.Click("dialog button[type=submit]"), s.sees("may have been done or not"))
	s.do("edited and sent", chromedp.Evaluate("losing = false", nil), chromedp.Evaluate(`document.querySelector("dialog textarea").value = "rather blue"`, nil), chromedp.Click("dialog button[type=submit]"), chromedp.WaitNotPresent("dialog"))
	var open []struct{ Query string }
	if list := s.cli("questions", run, "-o", "json"); json.Unmarshal([]byte(list), &open) != nil || len(open) != 1 {
		t.Fatalf("questions: %s", list)
	}
	s.cli("answer", run, open[0].Query, "green")
	s.cli("result", "--wait", run)
	read := s.cli("transcript", run)
	for _, text := range []string{"use green", "rather blue"} {
		if n := strings.Count(read, text); n != 1 {
			t.Errorf("the agent has read %q %d times:\n%s", text, n, read)
		}
	}
}

// What an older request has read of a run is not shown after what a newer one has: the page asks again the moment the run
// ends, and the short form of a run has no text of its result.
func TestResultStaysWhenAnOlderReplyComesLast(t *testing.T) {
	s := newStage(t)
	s.signIn()
	run := s.start(s.script("default: [{text: the result itself, delay: 3s}]\n"), "paint")
	shown := chromedp.Poll(`document.querySelector("main pre")?.innerText === "the result itself"`, nil)
	s.do("the first short reply comes only after the end", chromedp.Evaluate(`{ const real = fetch; let held = false; window.fetch = async (path, more) => {
		const brief = String(path).includes("brief=true") && !held;
		held ||= brief;
		if (brief) { while (!window.release) await new Promise((go) => setTimeout(go, 50)); window.released = true; }
		return real(path, more);
	}; }`, nil), chromedp.Evaluate(`location.hash = `+quote("#/run/"+run+"/stop"), nil), chromedp.Poll(`document.querySelector(".status.ended")`, nil), shown)
	s.do("the older reply comes", chromedp.Evaluate(`release = true`, nil), chromedp.Poll(`window.released`, nil), chromedp.Sleep(time.Second), shown)
}

// tabTo moves the focus with the key Tab to the element that the condition is about.
func (s *stage) tabTo(condition string) {
	s.t.Helper()
	for range 30 {
		var there bool
		if s.do("to "+condition, press(kb.Tab), chromedp.Evaluate(`(e => `+condition+`)(document.activeElement)`, &there)); there {
			return
		}
	}
	s.t.Fatalf("Tab does not come to %s", condition)
}

// filterRuns finds a run among others by the filters of the list.
func (s *stage) filterRuns(run, script string) {
	s.t.Helper()
	other := s.start("script/"+script, "look around")
	s.cli("result", "--wait", other)
	count := func(n int) chromedp.Action {
		return chromedp.Poll(`document.querySelectorAll(".row").length === `+jsonNumber(n), nil)
	}
	// The slash that chromedp types after the key has to be taken back: a browser of a person leaves it out.
	s.do("the list", press("gr"), s.sees("2 runs"), count(2))
	s.do("a search", press("/"), press(kb.Backspace+"FENCE"), count(1), s.sees("1 of 2 runs"))
	s.do("an agent and an age", press(kb.Tab), press(kb.Tab), press(kb.Tab), press("painter"), press(kb.Tab), press("last h"), count(1))
	var hash string
	s.do("the address", chromedp.Evaluate("location.hash", &hash))
	_, query, _ := strings.Cut(hash, "?")
	if v, err := url.ParseQuery(query); err != nil || v.Get("q") != "FENCE" || v.Get("agent") != "painter" || v.Get("age") != "1h" {
		s.t.Errorf("the address is %s", hash)
	}
	s.do("the address as a link", chromedp.Navigate("about:blank"), chromedp.Navigate("http://"+s.address+"/"+hash), s.sees("1 of 2 runs"), count(1), chromedp.Poll(`document.getElementById("find").value === "FENCE"`, nil))
	s.checkView("runs-filtered")
	var node string
	s.do("cleared, by key", chromedp.Focus(".rows"), press("c"), count(2), chromedp.Evaluate(`document.querySelector('select[aria-label="Node"]').options[1].value`, &node))
	s.do("a node of the address", chromedp.Evaluate(`location.hash = "#/runs?node=`+node+`&state=finished"`, nil), s.sees("2 of 2 runs"), chromedp.Evaluate(`location.hash = "#/runs?node=elsewhere"`, nil), s.sees("No run matches."), chromedp.Evaluate(`location.hash = "#/runs"`, nil), count(2))
	s.isAt("#/runs")
	// A page of one run stands for one of 1000.
	s.do("pages of one", chromedp.Evaluate(`{ const real = fetch; window.fetch = (path, more) => real(String(path).replace("limit=1000", "limit=1"), more); }`, nil), s.sees("the newest 1 runs; there are older ones"), count(1),
		press("m"), count(2), chromedp.Poll(`document.querySelector(".count").innerText.includes("older")`, nil), press("m"), s.sees("2 runs"), s.lacks("older ones"), count(2))
	s.do("the list has the keys at once, and Enter in the search opens what is selected", press("j"), chromedp.Poll(`document.activeElement.className === "rows" && document.querySelector('[aria-selected="true"]').ariaPosInSet === "2"`, nil),
		press("/"), press(kb.Enter), chromedp.WaitVisible("nav.tabs"), s.sees("run "+run[:10]))
}
