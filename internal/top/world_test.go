package top

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/compare"
	"github.com/troupe-run/troupe/internal/term"
	"github.com/troupe-run/troupe/mailbox"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC // times of day are drawn in it
	os.Exit(m.Run())
}

// began is when the run of the tests began, and now what their clock shows.
var (
	began = time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	now   = began.Add(12 * time.Second)
)

const runID = "01k9z3abcdefghjkmnpqrstvwx"

var sequence uint64

// eventOf is an event of the run at a number of milliseconds after its beginning.
func eventOf(ms int, agent, kind string, data any) client.Event {
	raw, err := json.Marshal(data)
	if err != nil {
		panic(err)
	}
	sequence++
	e := client.Event{Data: raw}
	e.ID, e.Run, e.Agent, e.Kind, e.Turn, e.Seq = fmt.Sprintf("%s.%s#%d.0", runID, agent, sequence), runID, agent, kind, 1, sequence
	e.TS = began.Add(time.Duration(ms) * time.Millisecond).Format(time.RFC3339Nano)
	return e
}

// teamEvents is a coordinator with two children: one has ended, the other asks a person.
func teamEvents() []client.Event {
	return []client.Event{
		eventOf(0, "super", event.KindRunStarted, map[string]any{"goal": "Find out why the build is slow, and write report.md", "model": "script/team.yaml", "limits": map[string]any{"tokens": 100000}}),
		eventOf(0, "super", event.KindAgentSpawned, map[string]any{"id": "root", "name": "coordinator"}),
		eventOf(100, "root", event.KindAgentStarted, map[string]any{"name": "coordinator", "model": "script/team.yaml", "goal": "find out"}),
		eventOf(500, "root", event.KindTurnStarted, map[string]any{}),
		eventOf(500, "root", event.KindModelStarted, map[string]any{"model": "m"}),
		eventOf(2000, "root", event.KindModelFinished, event.ModelFinished{Model: "m"}),
		eventOf(2000, "root", event.KindToolValidated, map[string]any{"call": "1-0", "tool": "delegate"}),
		eventOf(2000, "root", event.KindToolValidated, map[string]any{"call": "1-1", "tool": "delegate"}),
		eventOf(2000, "root", event.KindDelegationRequested, map[string]any{"call": "1-0", "tool": "delegate", "child": "root-1-0", "args": `{"agent":"historian","task":"read the log"}`}),
		eventOf(2000, "root", event.KindDelegationRequested, map[string]any{"call": "1-1", "tool": "delegate", "child": "root-1-1", "args": `{"agent":"auditor","task":"time the steps"}`}),
		eventOf(2000, "root", event.KindAgentWaiting, map[string]any{"children": []string{"root-1-0", "root-1-1"}}),
		eventOf(2100, "super", event.KindAgentSpawned, map[string]any{"id": "root-1-0", "name": "historian", "parent": "root"}),
		eventOf(2100, "super", event.KindAgentSpawned, map[string]any{"id": "root-1-1", "name": "auditor", "parent": "root"}),
		eventOf(2200, "root-1-0", event.KindAgentStarted, map[string]any{"name": "historian"}),
		eventOf(2300, "root-1-0", event.KindTurnStarted, map[string]any{}),
		eventOf(2300, "root-1-0", event.KindModelStarted, map[string]any{"model": "m"}),
		eventOf(3300, "root-1-0", event.KindModelFinished, event.ModelFinished{Model: "m"}),
		eventOf(3300, "root-1-0", event.KindToolValidated, map[string]any{"call": "1-0", "tool": "git_log"}),
		eventOf(3300, "root-1-0", event.KindToolStarted, map[string]any{"call": "1-0", "tool": "git_log"}),
		eventOf(5000, "root-1-0", event.KindToolFinished, map[string]any{"call": "1-0", "tool": "git_log"}),
		eventOf(6500, "root-1-0", event.KindAgentFinished, map[string]any{"name": "historian", "stop_reason": "completed", "turns": 1, "tool_calls": 1}),
		eventOf(6500, "root", event.KindDelegationFinished, map[string]any{"call": "1-0", "tool": "delegate", "child": "root-1-0", "text": "three people wrote it"}),
		eventOf(2200, "root-1-1", event.KindAgentStarted, map[string]any{"name": "auditor"}),
		eventOf(3200, "root-1-1", event.KindTurnStarted, map[string]any{}),
		eventOf(3200, "root-1-1", event.KindModelStarted, map[string]any{"model": "m"}),
		eventOf(5400, "root-1-1", event.KindModelFinished, event.ModelFinished{Model: "m"}),
		eventOf(5400, "super", event.KindBudgetSettled, map[string]any{"id": "root-1-1", "limit": map[string]any{"tokens": 100000}, "used": 8200, "reserved": 3000}),
		eventOf(5500, "root-1-1", event.KindQueryAsked, map[string]any{"query": "1-0.0", "question": diffQuestion}),
	}
}

// endEvents end the run.
func endEvents() []client.Event {
	return []client.Event{
		eventOf(11000, "root-1-1", event.KindAgentFinished, map[string]any{"name": "auditor", "stop_reason": "canceled", "turns": 1, "detail": "by a person"}),
		eventOf(11900, "root", event.KindAgentFinished, map[string]any{"name": "coordinator", "stop_reason": "canceled", "turns": 1, "tool_calls": 2}),
		eventOf(12000, "super", event.KindRunFinished, event.Result{Type: "result", Reason: spec.ByCancel, Detail: "canceled by a person", Text: "Partial: the **linker** is slow.", Turns: 1, Budget: event.BudgetResult{Used: 8200, Limit: 100000}}),
	}
}

const diffQuestion = "May this run?\n--- report.md\n+++ report.md\n@@ -1,2 +1,2 @@\n-The build is slow.\n+The build is slow because of the linker.\n same\n(no rule allows writing this file)\n"

// teamQuestions are two open questions: an approval in the run of the tests, and a question of another run.
func teamQuestions() []client.Question {
	return []client.Question{
		{RunID: runID, Agent: "root-1-1", Query: "1-0.0", Question: diffQuestion, Reason: "needs_human", Call: "1-0", Digest: "5ca1ab1e", Rule: "edit_file(/report.md)", AskedMS: began.Add(5500 * time.Millisecond).UnixMilli()},
		{RunID: "01k9z2zzzzzzzzzzzzzzzzzzzz", Agent: "root", Query: "3-0.0", Question: "Which server?", Reason: "needs_human", AskedMS: began.UnixMilli(), DueMS: now.Add(5 * time.Minute).UnixMilli()},
	}
}

func teamRuns() []client.RunInfo {
	done := client.RunInfo{RunID: "01k9z1yyyyyyyyyyyyyyyyyyyy", State: client.RunFinished, Title: "Translate the manual into German", Model: "script/done.yaml", Started: began.Add(-3 * time.Hour).Format(time.RFC3339)}
	done.Result = &event.Result{Reason: spec.Completed, CostKnown: true, CostUSD: 0.4, Budget: event.BudgetResult{Used: 51000, Limit: 200000, LimitUSD: 2}}
	return []client.RunInfo{
		{RunID: runID, State: client.RunParked, Title: "Find out why the build is slow, and write report.md", Model: "script/team.yaml", Started: began.Format(time.RFC3339),
			Result: &event.Result{Budget: event.BudgetResult{Used: 8200, Limit: 100000}}},
		{RunID: "01k9z2zzzzzzzzzzzzzzzzzzzz", State: client.RunQueued, Position: 2, Title: "Deploy", Model: "script/team.yaml", Started: began.Add(-time.Minute).Format(time.RFC3339)},
		done,
	}
}

func teamNodes() []client.NodeInfo {
	return []client.NodeInfo{
		{ID: "n1", Name: "rack7", Host: "rack7.example.com", State: "live", Version: "0.1.0", Started: began.Add(-48 * time.Hour).Format(time.RFC3339), Live: 3, Busy: 1, Resting: 2, LiveRuns: 1, QueuedRuns: 1, Pools: map[string][]int{"default": {0, 1, 2}}},
		{ID: "n2", Name: "rack8", State: "leaving", Version: "0.1.0", Started: began.Format(time.RFC3339), LogHealth: &client.LogHealth{Why: "no space left on device", Remedy: "free some"}},
		{ID: "n3", Name: "desk", State: "alone", Version: "0.1.0", Started: began.Format(time.RFC3339), Live: 2, Resting: 1, LiveRuns: 1},
	}
}

const teamTranscript = `{"agent":"root-1-1","name":"auditor","system":"You audit.","messages":[
{"role":"user","text":"time the steps"},
{"role":"assistant","text":"I **measure** the steps.\n\n- first the compiler\n- then the linker","calls":[{"id":"1-0","name":"grep","args":"{\"pattern\":\"took\"}"}]},
{"role":"tool","results":[{"call":"1-0","text":"a\nb\nc\nd\ne\nf\ng\nh"}]},
{"role":"assistant","text":"The linker it is.","calls":[{"id":"2-0","name":"edit_file","args":"{\"path\":\"report.md\"}"}]}],
"folds":[{"upto":1,"turn":1,"text":"summary"}]}`

func teamBudget() client.RunInfo {
	d := &client.Description{Limits: spec.RunLimits{Tokens: 100000}}
	d.Budget = client.BudgetInfo{Limit: budget.Limit{Tokens: 100000, Calls: 200}, Used: budget.Amount{Tokens: 8200, Calls: 2}, Reserved: budget.Amount{Tokens: 3000}, Kept: budget.Amount{Tokens: 500}}
	d.Agents = []client.AgentInfo{{ID: "root", Name: "coordinator", Used: budget.Amount{Tokens: 1200}}, {ID: "root-1-1", Name: "auditor", Used: budget.Amount{Tokens: 7000}, Limit: budget.Limit{Tokens: 20000}}}
	return client.RunInfo{RunID: runID, State: client.RunParked, Description: d}
}

// screen is a model under test, with what it wanted done.
type screen struct {
	t       testing.TB
	m       *Model
	clock   time.Time
	effects []Effect
}

// newScreen is a screen of a size, which knows the runs, the questions and the nodes.
func newScreen(t testing.TB, width, height int) *screen {
	s := &screen{t: t, m: New(Config{User: "ann", Now: now, NewID: func() string { return "01k9z4newnewnewnewnewnewne" }}), clock: now}
	s.m.Start()
	s.learn(Resized{width, height})
	s.fetched(FetchRuns{runsMax}, teamRuns())
	s.fetched(FetchQuestions{}, teamQuestions())
	s.fetched(FetchNodes{}, teamNodes())
	return s
}

// openTeam opens the run of the tests with its events.
func (s *screen) openTeam() *screen {
	s.press("enter")
	s.learn(EventsRead{runID, teamEvents()})
	s.fetched(FetchRun{runID}, client.RunInfo{RunID: runID, State: client.RunParked})
	return s
}

func (s *screen) learn(in Input) { s.effects = append(s.effects, s.m.Update(in)...) }

// learnTurn learns events of a turn of an agent.
func (s *screen) learnTurn(agent string, turn int, kinds ...event.Kind) {
	for _, kind := range kinds {
		e := eventOf(5000, agent, kind, map[string]any{})
		e.Turn = turn
		s.learn(EventsRead{runID, []client.Event{e}})
	}
}

func (s *screen) fetched(e Effect, data any) { s.learn(Fetched{Effect: e, Data: data, At: s.clock}) }

// press presses keys, each a second after the one before.
func (s *screen) press(names ...string) *screen {
	for _, name := range names {
		k := Key{Name: name, At: s.clock}
		if len([]rune(name)) == 1 {
			k.Text = name
		}
		if name == "space" {
			k.Text = " "
		}
		s.learn(k)
		s.clock = s.clock.Add(time.Second)
	}
	return s
}

// enterText types a text, and enter.
func (s *screen) enterText(text string) *screen {
	for _, r := range text {
		name := string(r)
		if r == ' ' {
			name = "space"
		}
		s.press(name)
	}
	return s.press("enter")
}

// taken returns the effects of some type that were wanted, and forgets all.
func taken[E Effect](s *screen) (list []E) {
	for _, e := range s.effects {
		if e, ok := e.(E); ok {
			list = append(list, e)
		}
	}
	s.effects = nil
	return list
}

// draw returns the screen, after it has checked that it fits the terminal.
func (s *screen) draw() string {
	s.t.Helper()
	text := s.m.View()
	lines := strings.Split(text, "\n")
	if s.m.width >= widthMin && s.m.height >= heightMin && len(lines) != s.m.height {
		s.t.Errorf("%s: %d lines on a terminal of %d", s.m.view, len(lines), s.m.height)
	}
	for _, l := range lines {
		if w := term.Width(l); w > s.m.width {
			s.t.Errorf("%s: %d columns on a terminal of %d: %q", s.m.view, w, s.m.width, l)
		}
	}
	return text
}

// teamEntries is the log of the coordinator, with a log of another agent and one of the supervisor beside it.
func teamEntries(t testing.TB) EntriesPage {
	t.Helper()
	p := EntriesPage{Logs: []mailbox.Address{runID + ".root@default", runID + ".root-1-1@default", runID + ".super@default"}, More: true}
	add := func(place uint64, e mailbox.Entry) {
		data, err := mailbox.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		p.Entries = append(p.Entries, client.LogEntry{Place: place, At: began.Add(time.Duration(place) * time.Second).UnixMilli(), Data: data})
	}
	item := func(kind string, body any) mailbox.Item {
		raw, err := mailbox.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		return mailbox.Item{N: 1, Kind: kind, ID: "m", Body: raw}
	}
	add(1, mailbox.Entry{Form: mailbox.Form, From: runID + ".super@default", Items: []mailbox.Item{item("Submitted", map[string]any{"task": "find out", "limit": 100000})}})
	add(3, mailbox.Entry{Form: mailbox.Form, From: runID + ".root@default", Epoch: mailbox.Epoch{Lease: 7, Start: 1}, Items: []mailbox.Item{item("Replied", map[string]any{"text": "\x1b[2J<b>I delegate.</b>"}), item("Returned", map[string]any{"call": "1-0"})}})
	p.Entries = append(p.Entries, client.LogEntry{Place: 4, At: began.UnixMilli(), Data: []byte("no entry \xff")})
	return p
}

// teamComparison is the run of the tests and a fork of it that was told something else at turn 2.
func teamComparison() Compared {
	c := Compared{Comparison: compare.Comparison{A: compare.Run{RunID: runID, Model: "script/team.yaml", Reason: "completed", Tokens: 8200, Turns: 3, Agents: 3, Text: "Partial"},
		B:    compare.Run{RunID: "01k9z4zzzzzzzzzzzzzzzzzzzz", Fork: runID + "@root:1", Model: "script/team.yaml", Tokens: 9100, CostUSD: 0.2, IsEstimate: true, Turns: 4, Agents: 3},
		Text: "--- result\n+++ result\n@@ -1 +1 @@\n-The linker is slow.\n+The disk is slow.\n"}}
	c.Steps = []compare.Pair{
		{Turn: 1, Kind: event.KindMessageAssistant, A: `{"text":"I delegate."}`, B: `{"text":"I delegate."}`},
		{Turn: 1, Kind: event.KindToolFinished, Call: "1-0", A: `{"call":"1-0","text":"three people wrote it"}`, B: `{"call":"1-0","text":"three people wrote it"}`},
		{Turn: 2, Kind: event.KindMessageUser, B: `{"text":"Look at the disk first, and only then at the linker."}`, Differs: true},
		{Turn: 2, Kind: event.KindMessageAssistant, A: `{"text":"The linker it is."}`, B: `{"text":"The disk it is: it writes 3 MB a second, which is what a disk of 1998 did. \u001b[2J"}`, Differs: true},
	}
	c.First = &compare.Difference{Agent: "root", Turn: 2, Kind: event.KindMessageUser, B: c.Steps[2].B}
	return c
}
