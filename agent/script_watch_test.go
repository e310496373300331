package agent_test

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
)

// watching reads what a script's task says of loops, breakers and people:
// `watch`, `breaker` or `failures=N refuse=N`, `ask`, `polling=(…)`, `forbidden=(…)`.
func watching(t *testing.T, d *datadriven.TestData, task *spec.Task) {
	t.Helper()
	m := &task.LoopOptions
	if d.HasArg("watch") {
		m.Watch = spec.DefaultLoopOptions().Watch
	}
	if d.HasArg("breaker") {
		m.Breaker = spec.DefaultLoopOptions().Breaker
	}
	m.Breaker.Failures = number(t, d, "failures", m.Breaker.Failures)
	m.Breaker.Forbidden = number(t, d, "refuse", m.Breaker.Forbidden)
	m.Ask = d.HasArg("ask")
	if arg, ok := d.Arg("polling"); ok {
		m.Watch.Polling = arg.Vals
	}
	if arg, ok := d.Arg("forbidden"); ok {
		task.Forbidden = arg.Vals
	}
}

// used is one call of a model and what the tool answers.
type used struct {
	tool, args, result string
	failed             bool
}

// work lets an agent with all manners make calls, one reply after the other,
// and returns the levels that its watch came to.
func work(t *testing.T, tools []model.ToolSpec, replies ...[]used) []event.LoopDetected {
	t.Helper()
	m := spec.DefaultLoopOptions()
	m.Breaker = spec.Breaker{}
	s := stepFact(agent.State{}, agent.Resumed{Life: "a"})
	s = stepFact(s, agent.Submitted{Task: spec.Task{ID: spec.Root, Goal: "Look.", LoopOptions: m, Tools: tools, Limits: spec.Limits{Turns: 1000}}})
	var found []event.LoopDetected
	next := func(f agent.Fact) {
		e := agent.Event{At: s.Now, Life: "a", Fact: f}
		after, stepped := agent.Step(s, e)
		for _, n := range stepped.Events {
			if l, ok := n.Data.(event.LoopDetected); ok {
				found = append(found, l)
			}
		}
		s = after
	}
	for turn, reply := range replies {
		if s.Phase != agent.Leasing {
			t.Fatalf("turn %d: the agent is %s, not ready for a reply", turn+1, s.Phase)
		}
		next(agent.Granted{Lease: s.Lease, Output: 4096, Calls: 64})
		said := model.Message{}
		for _, u := range reply {
			said.Calls = append(said.Calls, model.ToolCall{Name: u.tool, Args: u.args})
		}
		next(agent.Replied{Lease: s.Lease, Reply: model.Reply{Message: said}})
		for i, u := range reply {
			id := fmt.Sprintf("%d-%d", turn+1, i)
			next(agent.Started{Call: id, Attempt: 1, Life: "a"})
			attempt := 1
			if u.tool == "delegate" {
				attempt = 0
			}
			next(agent.Returned{Call: id, Attempt: attempt, Text: u.result, Error: u.failed})
		}
	}
	return found
}

func toolbox() []model.ToolSpec {
	return []model.ToolSpec{{Name: "read_file", Class: model.Read, Schema: schema("")}, {Name: "grep", Class: model.Read, Schema: schema("")},
		{Name: "edit_file", Class: model.Effect, Schema: schema("")}, {Name: "shell", Class: model.Effect, Schema: schema("")},
		{Name: "delegate", Class: model.Read, Schema: schema("delegate")}, {Name: "wait", Class: model.Read, Schema: schema(""), Poll: true}}
}

// q is a call with an argument of its own.
func q(tool string, n int, result string) used {
	return used{tool: tool, args: fmt.Sprintf(`{"q":"%d"}`, n), result: result}
}

// TestOrdinaryWorkIsNoLoop: what agents do all day is not taken for a loop (A24).
//
//behaviour:shows A24
func TestOrdinaryWorkIsNoLoop(t *testing.T) {
	lookAround := func() (replies [][]used) {
		for n := range 10 {
			replies = append(replies, []used{q("read_file", n, fmt.Sprintf("the text of file %d", n))})
		}
		return replies
	}
	for name, replies := range map[string][][]used{
		"ten files read one after the other": lookAround(),
		"six children in one reply": {{{tool: "delegate", args: `{"task":"a"}`, result: "none"}, {tool: "delegate", args: `{"task":"b"}`, result: "none"},
			{tool: "delegate", args: `{"task":"c"}`, result: "none"}, {tool: "delegate", args: `{"task":"d"}`, result: "none"},
			{tool: "delegate", args: `{"task":"e"}`, result: "none"}, {tool: "delegate", args: `{"task":"f"}`, result: "none"}}},
		"children whose answers are the same": {{{tool: "delegate", args: `{"task":"a"}`, result: "none"}}, {{tool: "delegate", args: `{"task":"b"}`, result: "none"}},
			{{tool: "delegate", args: `{"task":"c"}`, result: "none"}}, {{tool: "delegate", args: `{"task":"d"}`, result: "none"}}},
		"a search that is spread over one reply": {{q("grep", 1, "no matches"), q("grep", 2, "no matches"), q("grep", 3, "no matches"),
			q("grep", 4, "no matches"), q("grep", 5, "no matches"), q("grep", 6, "no matches")}},
		"edits that each answer ok": {{q("edit_file", 1, "ok")}, {q("edit_file", 2, "ok")}, {q("edit_file", 3, "ok")}, {q("edit_file", 4, "ok")}},
		"editing and testing by turns": {{q("edit_file", 1, "ok")}, {q("shell", 0, "3 fail")}, {q("edit_file", 2, "ok")}, {q("shell", 0, "2 fail")},
			{q("edit_file", 3, "ok")}, {q("shell", 0, "1 fails")}, {q("edit_file", 4, "ok")}, {q("shell", 0, "passed")}},
		"a file read again after each change": {{q("read_file", 0, "a")}, {q("edit_file", 1, "ok")}, {q("read_file", 0, "b")}, {q("edit_file", 2, "ok")}, {q("read_file", 0, "c")}},
		"two failures, then other work": {{{tool: "read_file", args: `{"q":"x"}`, result: "no such file", failed: true}},
			{{tool: "read_file", args: `{"q":"y"}`, result: "no such file", failed: true}}, {q("grep", 1, "found")}, {q("read_file", 1, "text")}},
		"a tool that is made for polling": {{q("wait", 0, "not yet")}, {q("wait", 0, "not yet")}, {q("wait", 0, "not yet")}, {q("wait", 0, "not yet")}},
	} {
		if found := work(t, toolbox(), replies...); len(found) > 0 {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

// TestLoopsAreSeen: each detector, at its number and not before (A24).
//
//behaviour:shows A24
func TestLoopsAreSeen(t *testing.T) {
	miss := func(n int) []used {
		return []used{{tool: "read_file", args: fmt.Sprintf(`{"q":"%d"}`, n), result: fmt.Sprintf("no file %d", n), failed: true}}
	}
	spaced := []used{{tool: "grep", args: `{ "q" : "0" }`, result: "2"}}
	for name, c := range map[string]struct {
		replies [][]used
		want    event.LoopDetected
	}{
		"the same call, however it is written": {[][]used{{q("grep", 0, "1")}, spaced, {q("grep", 0, "3")}}, event.LoopDetected{Tier: string(agent.Identical), Tool: "grep", Level: 1, Times: 3}},
		"the same call in one reply": {[][]used{{q("grep", 0, "1"), q("grep", 0, "1"), q("grep", 0, "1")}},
			event.LoopDetected{Tier: string(agent.Identical), Tool: "grep", Level: 1, Times: 3}},
		"the same test after edits that change nothing in it": {[][]used{{q("shell", 0, "fails")}, {q("edit_file", 1, "ok")}, {q("shell", 0, "fails")}, {q("edit_file", 2, "ok")},
			{q("shell", 0, "fails")}}, event.LoopDetected{Tier: string(agent.Identical), Tool: "shell", Level: 1, Times: 3}},
		"other words, the same answer": {[][]used{{q("grep", 1, "no matches")}, {q("grep", 2, "no matches")}, {q("grep", 3, "no matches")}},
			event.LoopDetected{Tier: string(agent.NoProgress), Tool: "grep", Level: 1, Times: 3}},
		"four guesses that miss": {[][]used{miss(1), miss(2), miss(3), miss(4)}, event.LoopDetected{Tier: string(agent.Pattern), Tool: "read_file", Level: 1, Times: 4}},
	} {
		if found := work(t, toolbox(), c.replies[:len(c.replies)-1]...); len(found) > 0 {
			t.Errorf("%s: seen too early: %+v", name, found)
		}
		if found := work(t, toolbox(), c.replies...); len(found) != 1 || found[0] != c.want {
			t.Errorf("%s: got %+v, want %+v", name, found, c.want)
		}
	}
}

// TestARoundOfManyFilesIsSeenInTheEnd: a loop that is longer than the watch's
// window brings nothing that was not seen before (A24).
func TestARoundOfManyFilesIsSeenInTheEnd(t *testing.T) {
	var replies [][]used
	for n := range 24 {
		replies = append(replies, []used{q("read_file", n%10, fmt.Sprintf("the text of file %d", n%10))})
		if found := work(t, toolbox(), replies...); len(found) > 0 {
			if n != 13 {
				t.Errorf("seen at reading %d, want the fourth of the second round", n+1)
			}
			return
		}
	}
	t.Error("never seen")
}
