package agent_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/loopoptions"
	"github.com/troupe-run/troupe/internal/message"
	"github.com/troupe-run/troupe/model"
)

// TestHookCannotSendAnInvalidPrompt: whatever a strict provider would refuse is refused
// before it is sent (A20).
func TestHookCannotSendAnInvalidPrompt(t *testing.T) {
	user := func(text string) model.Message { return model.Message{Role: model.User, Text: text} }
	said := func(text string, ids ...string) model.Message {
		m := model.Message{Role: model.Assistant, Text: text}
		for _, id := range ids {
			m.Calls = append(m.Calls, model.ToolCall{ID: id, Name: "search", Args: "{}"})
		}
		return m
	}
	results := func(ids ...string) model.Message {
		m := model.Message{Role: model.ToolRole}
		for _, id := range ids {
			m.Results = append(m.Results, model.ToolResult{Call: id, Text: "found"})
		}
		return m
	}
	struck := user("old")
	struck.Tombstone = true
	late := user("look")
	late.Results = results("1").Results
	for what, c := range map[string]struct {
		list    []model.Message
		because string
	}{
		"nothing":                      {nil, "does not begin with a user's message"},
		"an assistant first":           {[]model.Message{said("I"), user("you")}, "does not begin with a user's message"},
		"an assistant last":            {[]model.Message{user("look"), said("I look")}, "ends with nothing to answer"},
		"two users":                    {[]model.Message{user("look"), user("there")}, "two messages of user in a row"},
		"two assistants":               {[]model.Message{user("look"), said("I"), said("look"), user("go on")}, "two messages of assistant in a row"},
		"a user without a word":        {[]model.Message{user(" \n")}, "it says nothing"},
		"an assistant without a word":  {[]model.Message{user("look"), said(""), user("go on")}, "it says nothing"},
		"a tombstone":                  {[]model.Message{user("look"), said("I"), struck}, "struck from the transcript"},
		"a role of its own":            {[]model.Message{user("look"), {Role: "system", Text: "obey"}, user("go on")}, `no role is called "system"`},
		"a call without its result":    {[]model.Message{user("look"), said("", "1"), user("go on")}, "calls and results do not match"},
		"a result without its call":    {[]model.Message{user("look"), said("I look"), results("1")}, "calls and results do not match"},
		"results of a user":            {[]model.Message{late}, "calls and results do not match"},
		"one result of two":            {[]model.Message{user("look"), said("", "1", "2"), results("1")}, "1 results for 2 calls"},
		"results in another order":     {[]model.Message{user("look"), said("", "1", "2"), results("2", "1")}, `result 0 answers "2", the call is "1"`},
		"one id for two calls":         {[]model.Message{user("look"), said("", "1", "1"), results("1", "1")}, "used twice, or is none"},
		"an id of an earlier call":     {[]model.Message{user("look"), said("", "1"), results("1"), said("", "1"), results("1")}, "used twice, or is none"},
		"an id that is none":           {[]model.Message{user("look"), said("", "a b"), results("a b")}, "used twice, or is none"},
		"more than an entry can hold":  {[]model.Message{user(strings.Repeat("x", message.SentBytesMax+1))}, "bytes, at most"},
		"as much as an entry can hold": {[]model.Message{user(strings.Repeat("x", message.SentBytesMax))}, ""},
		"a whole conversation":         {[]model.Message{user("look"), said("I look", "1", "2"), results("1", "2"), said("more"), user("go on"), said("", "3"), results("3")}, ""},
	} {
		switch err := message.Sendable(c.list); {
		case c.because == "" && err != nil:
			t.Errorf("%s: %v", what, err)
		case c.because != "" && (err == nil || !strings.Contains(err.Error(), c.because)):
			t.Errorf("%s: %v, want %q", what, err, c.because)
		}
	}
}

// TestHookFailureDefaultAppliesWhenItsChangeIsOverwritten: where what a hook sends did not arrive, because
// a later one changed it and failed then, its own default counts (A20).
//
//behaviour:shows A20
func TestHookFailureDefaultAppliesWhenItsChangeIsOverwritten(t *testing.T) {
	m := spec.LoopOptions{Hooks: []spec.Hook{{Name: "redact", Point: spec.HookContext, Failing: spec.HookTrip}, {Name: "shorten", Point: spec.HookContext}}}
	s := stepAgent(agent.State{}, agent.Resumed{Activation: "a"})
	s = stepAgent(s, agent.Submitted{Task: spec.Task{ID: spec.Root, Goal: "Look.", LoopOptions: m}})
	lost := agent.Hooked{ID: "context.1", Point: spec.HookContext, Answers: []spec.HookAnswer{{Hook: "redact", Sent: 1}, {Hook: "shorten", Failed: "it does not fit"}}}
	if s := stepAgent(s, lost); s.Phase != agent.Done || s.Outcome.Reason != spec.Guardrail || !strings.Contains(s.Outcome.Detail, "what it sends is lost") {
		t.Errorf("lost: phase %s, %+v", s.Phase, s.Outcome)
	}
	short := []model.Message{{Role: model.User, Text: "in short"}}
	there := agent.Hooked{ID: "context.1", Point: spec.HookContext, Answers: []spec.HookAnswer{{Hook: "redact", Sent: 1}, {Hook: "shorten", Messages: short, Sent: 1}}}
	if s := stepAgent(s, there); s.Phase != agent.Reserving || len(s.HookEffects.Sent) != 1 {
		t.Errorf("there: phase %s, %+v", s.Phase, s.HookEffects.Sent)
	}
}

// actingAgent is a loop whose model has just called a tool.
func actingAgent(m spec.LoopOptions) agent.State {
	s := stepAgent(agent.State{}, agent.Resumed{Activation: "a"})
	s = stepAgent(s, agent.Submitted{Task: spec.Task{ID: spec.Root, Goal: "Look.", LoopOptions: m,
		Tools: []model.ToolSpec{{Name: "search", Class: model.Read, Schema: toolSchema("search")}}}})
	s = stepAgent(s, agent.Granted{Reservation: s.Reservation, Output: 1000, Calls: 64})
	return stepAgent(s, agent.Replied{Reservation: s.Reservation, Reply: model.Reply{Message: model.Message{Calls: []model.ToolCall{{Name: "search", Args: `{"q":"A"}`}}}}})
}

// TestHookRemarksOfATurnAreBounded: however many are told, the model reads a bounded
// part of what they say (A19).
//
//behaviour:shows A19
func TestHookRemarksOfATurnAreBounded(t *testing.T) {
	var m spec.LoopOptions
	f := agent.Hooked{ID: "post_sampling.1", Point: spec.HookSampled}
	for i := range spec.HooksMax {
		name := fmt.Sprintf("h%d", i)
		m.Hooks = append(m.Hooks, spec.Hook{Name: name, Point: spec.HookSampled})
		f.Answers = append(f.Answers, spec.HookAnswer{Hook: name, Text: strings.Repeat("x", spec.HookTextMax+9)})
	}
	s := stepAgent(actingAgent(m), f)
	s = stepAgent(s, agent.Returned{Call: "1-0", Attempt: 1, Text: "found"})
	heard := 0
	for _, said := range s.History {
		if strings.HasPrefix(said.Text, "Hook h") {
			heard++
		}
		if len(said.Text) > spec.HookTextMax+100 {
			t.Errorf("a hook says %d bytes", len(said.Text))
		}
	}
	if heard != agent.RemarksMax {
		t.Errorf("%d hooks are heard, at most %d may be", heard, agent.RemarksMax)
	}
}

// TestHookReplacementResultIsCountedAnew: what was counted of the failure says
// nothing of the result in its place (A19, D1).
func TestHookReplacementResultIsCountedAnew(t *testing.T) {
	s := actingAgent(spec.LoopOptions{Hooks: []spec.Hook{{Name: "mender", Point: spec.HookToolError}}})
	s = stepAgent(s, agent.Returned{Call: "1-0", Attempt: 1, Text: "no", Error: true, Tokens: 1})
	text := strings.Repeat("the result of yesterday ", 100)
	s = stepAgent(s, agent.Hooked{ID: "tool_error.1-0.1", Point: spec.HookToolError, Answers: []spec.HookAnswer{{Hook: "mender", Decision: spec.HookOverride, Text: text}}})
	if m := s.History[len(s.History)-1]; len(m.Results) != 1 || m.Results[0].Error || m.Tokens < 100 {
		t.Errorf("%d tokens for %+v", m.Tokens, m.Results)
	}
}

// TestAnsweredQuestionEndsTheForcedToolChoice: a person has answered what the loop asked, so
// the next reply is the model's own choice (A24, E4).
func TestAnsweredQuestionEndsTheForcedToolChoice(t *testing.T) {
	m := spec.LoopOptions{AskPeople: true, Breaker: spec.Breaker{Failures: 1}}
	s := actingAgent(m)
	s.Force = model.ChoiceAny // of a level that was reached before
	s = stepAgent(s, agent.Returned{Call: "1-0", Attempt: 1, Text: "no network", Error: true})
	if s.Suspended.Why != agent.AwaitsPerson {
		t.Fatalf("nobody is asked in phase %s", s.Phase)
	}
	s = stepAgent(s, agent.Answered{Query: s.Suspended.Question.Query, Decision: "text", Text: "try the other one"})
	if s.Phase != agent.Reserving || s.Force != "" {
		t.Errorf("phase %s, forced to %q", s.Phase, s.Force)
	}
}

// TestToolTimeSumsAllAttempts: each counts once, also the one that failed
// in passing, and copies of a result do not (C5, F6).
//
//behaviour:shows C5
func TestToolTimeSumsAllAttempts(t *testing.T) {
	s := actingAgent(spec.LoopOptions{ToolRetries: 1})
	failed := agent.Returned{Call: "1-0", Attempt: 1, Text: "no network", Error: true, Transient: true, TookMS: 500}
	s = stepAgent(stepAgent(s, failed), failed)
	s = stepAgent(s, agent.Woke{Timer: "retry-1-0"})
	found := agent.Returned{Call: "1-0", Attempt: 2, Text: "found", TookMS: 70}
	s = stepAgent(stepAgent(s, found), found)
	if s.ToolMS != 570 || s.Phase != agent.Reserving {
		t.Errorf("phase %s, tools took %d ms", s.Phase, s.ToolMS)
	}
}

// TestTransformedPromptDoesNotAffectNextBound: what a hook made of one prompt bounds that one,
// and nothing after it (A20, G1).
func TestTransformedPromptDoesNotAffectNextBound(t *testing.T) {
	task := spec.Task{ID: spec.Root, Goal: strings.Repeat("look at it ", 1000), LoopOptions: spec.LoopOptions{Hooks: []spec.Hook{{Name: "shorten", Point: spec.HookContext}}}}
	s := stepAgent(agent.State{}, agent.Resumed{Activation: "a"})
	s = stepAgent(s, agent.Submitted{Task: task})
	s = stepAgent(s, agent.Hooked{ID: "context.1", Point: spec.HookContext, Answers: []spec.HookAnswer{{Hook: "shorten", Messages: []model.Message{{Role: model.User, Text: "Look."}}}}})
	if s.InputBound() > 2000 {
		t.Errorf("the short prompt is bounded by %d tokens", s.InputBound())
	}
	s = stepAgent(s, agent.Granted{Reservation: s.Reservation, Output: 1000})
	s = stepAgent(s, agent.Replied{Reservation: s.Reservation, Reply: model.Reply{Message: model.Message{Text: "I look."}}})
	if s.Phase != agent.Stopping || s.InputBound() < int64(len(task.Goal)) {
		t.Errorf("phase %s, the next prompt is bounded by %d tokens", s.Phase, s.InputBound())
	}
}

// TestAnEventOfAHookIsBounded: whatever a log says that a hook has said (A19, I1).
func TestAnEventOfAHookIsBounded(t *testing.T) {
	s := stepAgent(agent.State{}, agent.Resumed{Activation: "a"})
	s = stepAgent(s, agent.Submitted{Task: spec.Task{ID: spec.Root, Goal: "Look.", LoopOptions: spec.LoopOptions{Hooks: []spec.Hook{{Name: "scope", Point: spec.HookInput}}}}})
	e := agent.Input{At: s.Now, Activation: "a", Fact: agent.Hooked{ID: "input.1", Point: spec.HookInput,
		Answers: []spec.HookAnswer{{Hook: "scope", Text: strings.Repeat("x", 10*spec.HookTextMax)}}}}
	_, stepped := agent.Step(s, e)
	fired := 0
	for _, n := range stepped.Events {
		if d, ok := n.Data.(event.HookFired); ok {
			if fired++; len(d.Text) > spec.HookTextMax+10 {
				t.Errorf("the event has %d bytes of text", len(d.Text))
			}
		}
	}
	if fired != 1 {
		t.Errorf("%d events", fired)
	}
}

// TestOpenedRunRecordsItsDefaults: a later default changes no run that has begun.
func TestOpenedRunRecordsItsDefaults(t *testing.T) {
	m := loopoptions.Fill(spec.LoopOptions{Require: spec.Require{Schema: `{"type":"object"}`}, Continue: spec.Continue{Tokens: 10}, Context: spec.Context{Percent: 50}})
	if m.Require.Tries != spec.RequireTries || m.Continue.Percent != spec.ContinuePercent || m.Continue.Small != spec.ContinueSmall ||
		m.Continue.Rounds != spec.ContinueRounds || m.Context.Tail != spec.CompactTail || m.Context.PruneTail != spec.PruneTail ||
		m.Context.Within != spec.LadderTurns || m.Context.Summary != spec.SummaryTokens || m.Context.Percent != 50 {
		t.Errorf("%+v", m)
	}
	var none spec.LoopOptions
	if filled := loopoptions.Fill(none); filled.Require.Tries != 0 || filled.Continue.Percent != 0 || filled.Context.Tail != 0 {
		t.Errorf("what is off is switched on: %+v", filled)
	}
}
