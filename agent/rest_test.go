package agent_test

import (
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
)

// stepUntilRest steps facts and says whether the agent rests, and until when.
func stepUntilRest(s agent.State, facts ...agent.Fact) (agent.State, string) {
	for i, f := range facts {
		s, _ = agent.Step(s, agent.Input{N: uint64(i + 1), Activation: "a", Fact: f})
	}
	due, ok := s.Rests()
	switch {
	case !ok:
		return s, "works"
	case due == 0:
		return s, "rests"
	}
	return s, "rests until " + (time.Duration(due) * time.Millisecond).String()
}

// Who waits for a person, a child, money or the clock rests, and knows when the
// clock has something to say; who has begun something that only this process can
// end does not (P19).
func TestWaitingAgentMayPassivate(t *testing.T) {
	const soft = "rests until 15m0s"
	task := spec.Task{Run: "r", ID: spec.Root, Goal: "do it", Model: spec.Model{Name: "script/one"},
		Tools: []model.ToolSpec{
			{Name: "look", Schema: `{"type":"object"}`, Class: model.Read},
			{Name: "pay", Schema: `{"type":"object"}`, Class: model.Effect},
			{Name: "delegate", Schema: `{"type":"object"}`, Class: model.Read},
			agent.AskSpec()},
		LoopOptions: spec.LoopOptions{AskPeople: true, ToolRetries: 2}}
	submitted, granted := agent.Submitted{Task: task}, agent.Granted{Reservation: 1, Output: 100, Calls: 9}
	calls := func(names ...string) agent.Replied {
		m := model.Message{Role: model.Assistant}
		for _, name := range names {
			m.Calls = append(m.Calls, model.ToolCall{Name: name, Args: `{"question":"which?","task":"x"}`})
		}
		return agent.Replied{Reservation: 1, Reply: model.Reply{Message: m, UsageKnown: true}}
	}
	started := agent.Started{Call: "1-0", Attempt: 1, Activation: "a"}
	failed := agent.Failed{Reservation: 1, Class: model.Overload, Unbilled: true, AfterMS: 90_000}
	begun := agent.Resumed{Activation: "a"}
	for _, c := range []struct {
		name  string
		facts []agent.Fact
		want  string
	}{
		{"nothing was asked of it", nil, "rests"},
		{"for money", []agent.Fact{submitted}, soft},
		{"for a model", []agent.Fact{submitted, granted}, "works"},
		{"for the next attempt", []agent.Fact{submitted, granted, failed}, "rests until 1m30s"},
		{"for a tool", []agent.Fact{submitted, granted, calls("look")}, "works"},
		{"for the record of a side effect", []agent.Fact{submitted, granted, calls("pay")}, "works"},
		{"for a side effect", []agent.Fact{submitted, granted, calls("pay"), started}, "works"},
		{"for a person about a lost one", []agent.Fact{submitted, granted, calls("pay"), started, agent.Resumed{Activation: "b"}}, "rests"},
		{"for a child", []agent.Fact{submitted, granted, calls("delegate")}, "rests"}, // its child's clock runs, not its own
		{"for a child and a tool", []agent.Fact{submitted, granted, calls("delegate", "look")}, "works"},
		{"for a child, when it is late already", []agent.Fact{submitted, granted, calls("delegate"), agent.Woke{Timer: "soft"}}, "rests"},
		{"for a person", []agent.Fact{submitted, granted, calls("ask_human")}, "rests"},
		{"for a tool's next attempt", []agent.Fact{submitted, granted, calls("look"),
			agent.Returned{Call: "1-0", Attempt: 1, Error: true, Transient: true}}, "rests until 500ms"},
		{"for a verdict", []agent.Fact{submitted, granted, agent.Replied{Reservation: 1, Reply: model.Reply{
			Message: model.Message{Role: model.Assistant, Text: "done"}, UsageKnown: true}}}, soft},
		{"for nothing more", []agent.Fact{submitted, agent.Canceled{}}, "works"},
	} {
		if _, got := stepUntilRest(agent.State{}, append([]agent.Fact{begun}, c.facts...)...); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	// After the soft limit only the hard one is left, and hooks are work.
	s, _ := stepUntilRest(agent.State{}, begun, submitted, granted, agent.Replied{Reservation: 1, Reply: model.Reply{
		Message: model.Message{Role: model.Assistant, Text: "done"}, UsageKnown: true}})
	s, _ = agent.Step(s, agent.Input{N: 9, At: (16 * time.Minute).Milliseconds(), Activation: "a", Fact: agent.Woke{Timer: "soft"}})
	if _, got := stepUntilRest(s); got != "rests until 20m0s" {
		t.Errorf("late: %s", got)
	}
	s.Phase, s.Suspended.Why, s.Calls = agent.Waiting, agent.AwaitsOthers, nil
	if _, got := stepUntilRest(s); got != "rests until 20m0s" {
		t.Errorf("for children in the background: %s", got)
	}
	task.LoopOptions.Hooks = []spec.Hook{{Name: "gate", Point: spec.HookInput, Command: "true"}}
	if _, got := stepUntilRest(agent.State{}, begun, agent.Submitted{Task: task}); got != "works" {
		t.Errorf("at a gate: %s", got)
	}
}

// TestQuestionWakesItsAgentWhenItExpires, also an agent that was passivated by another activation.
func TestQuestionWakesItsAgentWhenItExpires(t *testing.T) {
	task := spec.Task{Run: "r", ID: spec.Root, Goal: "do it", Model: spec.Model{Name: "script/one"}, Tools: []model.ToolSpec{agent.AskSpec()},
		LoopOptions: spec.LoopOptions{AskPeople: true, QuestionMS: 60_000}}
	ask := model.Message{Role: model.Assistant, Calls: []model.ToolCall{{Name: "ask_human", Args: `{"question":"which?"}`}}}
	asked := []agent.Fact{agent.Resumed{Activation: "a"}, agent.Submitted{Task: task}, agent.Granted{Reservation: 1, Output: 100, Calls: 9},
		agent.Replied{Reservation: 1, Reply: model.Reply{Message: ask, UsageKnown: true}}}
	for name, facts := range map[string][]agent.Fact{"first": asked, "second": append(asked, agent.Resumed{Activation: "b"})} {
		if _, got := stepUntilRest(agent.State{}, facts...); got != "rests until 1m0s" {
			t.Errorf("in the %s activation: %s", name, got)
		}
	}
}
