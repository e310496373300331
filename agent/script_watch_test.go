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

// parseWatch reads what a script's task says of loops, breakers and people:
// `watch apart=N`, `breaker` or `failures=N refuse=N`, `ask-people`, `polling=(…)`, `forbidden=(…)`.
func parseWatch(t *testing.T, d *datadriven.TestData, task *spec.Task) {
	t.Helper()
	m := &task.LoopOptions
	if d.HasArg("watch") {
		m.Watch = spec.DefaultLoopOptions().Watch
		m.Watch.Apart = argumentNumber(t, d, "apart", 0) // a step at each reply
	}
	if d.HasArg("breaker") {
		m.Breaker = spec.DefaultLoopOptions().Breaker
	}
	m.Breaker.Failures = argumentNumber(t, d, "failures", m.Breaker.Failures)
	m.Breaker.Forbidden = argumentNumber(t, d, "refuse", m.Breaker.Forbidden)
	m.AskPeople = d.HasArg("ask-people")
	if arg, ok := d.Arg("polling"); ok {
		m.Watch.Polling = arg.Vals
	}
	if arg, ok := d.Arg("forbidden"); ok {
		task.Forbidden = arg.Vals
	}
}

// usedTool is one call of a model and what the tool answers.
type usedTool struct {
	tool, args, result string
	failed             bool
}

// playCalls lets an agent with all loop options make calls, one reply after the other,
// and returns the levels that its watch came to.
func playCalls(t *testing.T, tools []model.ToolSpec, replies ...[]usedTool) []event.LoopDetected {
	t.Helper()
	m := spec.DefaultLoopOptions()
	m.Breaker = spec.Breaker{}
	s := stepAgent(agent.State{}, agent.Resumed{Activation: "a"})
	s = stepAgent(s, agent.Submitted{Task: spec.Task{ID: spec.Root, Goal: "Look.", LoopOptions: m, Tools: tools, Limits: spec.Limits{Turns: 1000}}})
	var found []event.LoopDetected
	next := func(f agent.Fact) {
		e := agent.Input{At: s.Now, Activation: "a", Fact: f}
		after, stepped := agent.Step(s, e)
		for _, n := range stepped.Events {
			if l, ok := n.Data.(event.LoopDetected); ok {
				found = append(found, l)
			}
		}
		s = after
	}
	for turn, reply := range replies {
		if s.Phase != agent.Reserving {
			t.Fatalf("turn %d: the agent is %s, not ready for a reply", turn+1, s.Phase)
		}
		next(agent.Granted{Reservation: s.Reservation, Output: 4096, Calls: 64})
		said := model.Message{}
		for _, u := range reply {
			said.Calls = append(said.Calls, model.ToolCall{Name: u.tool, Args: u.args})
		}
		next(agent.Replied{Reservation: s.Reservation, Reply: model.Reply{Message: said}})
		for i, u := range reply {
			id := fmt.Sprintf("%d-%d", turn+1, i)
			next(agent.Started{Call: id, Attempt: 1, Activation: "a"})
			attempt := 1
			if u.tool == "delegate" {
				attempt = 0
			}
			next(agent.Returned{Call: id, Attempt: attempt, Text: u.result, Error: u.failed})
		}
	}
	return found
}

func testTools() []model.ToolSpec {
	return []model.ToolSpec{{Name: "read_file", Class: model.Read, Schema: toolSchema("")}, {Name: "grep", Class: model.Read, Schema: toolSchema("")},
		{Name: "edit_file", Class: model.Effect, Schema: toolSchema("")}, {Name: "shell", Class: model.Effect, Schema: toolSchema("")},
		{Name: "delegate", Class: model.Read, Schema: toolSchema("delegate")}, {Name: "wait", Class: model.Read, Schema: toolSchema(""), Poll: true}}
}

// callOf is a call with an argument of its own.
func callOf(tool string, n int, result string) usedTool {
	return usedTool{tool: tool, args: fmt.Sprintf(`{"q":"%d"}`, n), result: result}
}

// inTurns are different searches with one result, one in each reply.
func inTurns(n int, result string) (replies [][]usedTool) {
	for i := range n {
		replies = append(replies, []usedTool{callOf("grep", i, result)})
	}
	return replies
}

// TestOrdinaryWorkIsNotALoop: what agents do all day is not taken for a loop (A24).
//
//behaviour:shows A24
func TestOrdinaryWorkIsNotALoop(t *testing.T) {
	lookAround := func() (replies [][]usedTool) {
		for n := range 10 {
			replies = append(replies, []usedTool{callOf("read_file", n, fmt.Sprintf("the text of file %d", n))})
		}
		return replies
	}
	for name, replies := range map[string][][]usedTool{
		"ten files read one after the other": lookAround(),
		"six children in one reply": {{{tool: "delegate", args: `{"task":"a"}`, result: "none"}, {tool: "delegate", args: `{"task":"b"}`, result: "none"},
			{tool: "delegate", args: `{"task":"c"}`, result: "none"}, {tool: "delegate", args: `{"task":"d"}`, result: "none"},
			{tool: "delegate", args: `{"task":"e"}`, result: "none"}, {tool: "delegate", args: `{"task":"f"}`, result: "none"}}},
		"children whose answers are the same": {{{tool: "delegate", args: `{"task":"a"}`, result: "none"}}, {{tool: "delegate", args: `{"task":"b"}`, result: "none"}},
			{{tool: "delegate", args: `{"task":"c"}`, result: "none"}}, {{tool: "delegate", args: `{"task":"d"}`, result: "none"}}},
		"a search that is spread over one reply": {{callOf("grep", 1, "no matches"), callOf("grep", 2, "no matches"), callOf("grep", 3, "no matches"),
			callOf("grep", 4, "no matches"), callOf("grep", 5, "no matches"), callOf("grep", 6, "no matches")}},
		"eight different searches without a match":       inTurns(8, "no matches"),
		"eight different searches that bring empty text": inTurns(8, ""),
		"eight different searches in JSON":               inTurns(8, "[]"),
		"eight different searches by troupe's grep":      inTurns(8, "[0 matches in 0 files; 2 files searched]"),
		"eight different searches by troupe's glob":      inTurns(8, "[0 files, 0 bytes]"),
		"edits that each answer ok":                      {{callOf("edit_file", 1, "ok")}, {callOf("edit_file", 2, "ok")}, {callOf("edit_file", 3, "ok")}, {callOf("edit_file", 4, "ok")}},
		"editing and testing by turns": {{callOf("edit_file", 1, "ok")}, {callOf("shell", 0, "3 fail")}, {callOf("edit_file", 2, "ok")}, {callOf("shell", 0, "2 fail")},
			{callOf("edit_file", 3, "ok")}, {callOf("shell", 0, "1 fails")}, {callOf("edit_file", 4, "ok")}, {callOf("shell", 0, "passed")}},
		"a file read again after each change": {{callOf("read_file", 0, "a")}, {callOf("edit_file", 1, "ok")}, {callOf("read_file", 0, "b")}, {callOf("edit_file", 2, "ok")}, {callOf("read_file", 0, "c")}},
		"two failures, then other work": {{{tool: "read_file", args: `{"q":"x"}`, result: "no such file", failed: true}},
			{{tool: "read_file", args: `{"q":"y"}`, result: "no such file", failed: true}}, {callOf("grep", 1, "found")}, {callOf("read_file", 1, "text")}},
		"a tool that is made for polling": {{callOf("wait", 0, "not yet")}, {callOf("wait", 0, "not yet")}, {callOf("wait", 0, "not yet")}, {callOf("wait", 0, "not yet")}},
	} {
		if found := playCalls(t, testTools(), replies...); len(found) > 0 {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

// TestLoopsAreDetected: each detector, at its number and not before (A24).
//
//behaviour:shows A24
func TestLoopsAreDetected(t *testing.T) {
	miss := func(n int) []usedTool {
		return []usedTool{{tool: "read_file", args: fmt.Sprintf(`{"q":"%d"}`, n), result: fmt.Sprintf("no file %d", n), failed: true}}
	}
	spaced := []usedTool{{tool: "grep", args: `{ "q" : "0" }`, result: "2"}}
	for name, c := range map[string]struct {
		replies [][]usedTool
		want    event.LoopDetected
	}{
		"the same call, however it is written": {[][]usedTool{{callOf("grep", 0, "1")}, spaced, {callOf("grep", 0, "3")}}, event.LoopDetected{Tier: string(agent.Identical), Tool: "grep", Level: 1, Times: 3}},
		"the same call in one reply": {[][]usedTool{{callOf("grep", 0, "1"), callOf("grep", 0, "1"), callOf("grep", 0, "1")}},
			event.LoopDetected{Tier: string(agent.Identical), Tool: "grep", Level: 1, Times: 3}},
		"the same test after edits that change nothing in it": {[][]usedTool{{callOf("shell", 0, "fails")}, {callOf("edit_file", 1, "ok")}, {callOf("shell", 0, "fails")}, {callOf("edit_file", 2, "ok")},
			{callOf("shell", 0, "fails")}}, event.LoopDetected{Tier: string(agent.Identical), Tool: "shell", Level: 1, Times: 3}},
		"other words, the same answer": {[][]usedTool{{callOf("grep", 1, "the index is locked")}, {callOf("grep", 2, "the index is locked")}, {callOf("grep", 3, "the index is locked")}},
			event.LoopDetected{Tier: string(agent.NoProgress), Tool: "grep", Level: 1, Times: 3}},
		"four guesses that miss": {[][]usedTool{miss(1), miss(2), miss(3), miss(4)}, event.LoopDetected{Tier: string(agent.Pattern), Tool: "read_file", Level: 1, Times: 4}},
	} {
		if found := playCalls(t, testTools(), c.replies[:len(c.replies)-1]...); len(found) > 0 {
			t.Errorf("%s: seen too early: %+v", name, found)
		}
		if found := playCalls(t, testTools(), c.replies...); len(found) != 1 || found[0] != c.want {
			t.Errorf("%s: got %+v, want %+v", name, found, c.want)
		}
	}
}

// TestLongLoopOverManyFilesIsDetected: a loop that is longer than the watch's
// window brings nothing that was not seen before (A24).
func TestLongLoopOverManyFilesIsDetected(t *testing.T) {
	var replies [][]usedTool
	for n := range 24 {
		replies = append(replies, []usedTool{callOf("read_file", n%10, fmt.Sprintf("the text of file %d", n%10))})
		if found := playCalls(t, testTools(), replies...); len(found) > 0 {
			if n != 13 {
				t.Errorf("seen at reading %d, want the fourth of the second round", n+1)
			}
			return
		}
	}
	t.Error("never seen")
}
