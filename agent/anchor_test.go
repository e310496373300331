package agent

import (
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/model"
)

// What a provider reported for a request without the schema of the answer is no
// measure of one with it (P21).
func TestInputBoundIncludesSchemaAfterTurnWithoutSchema(t *testing.T) {
	schema := `{"type":"object","properties":{"a":{"type":"string","description":"` + strings.Repeat("word ", 1600) + `"}},"required":["a"]}`
	task := spec.Task{ID: spec.Root, Goal: "g", LoopOptions: spec.LoopOptions{Require: spec.Require{Schema: schema}}}
	task.Limits = task.Limits.WithDefaults(0)
	s := adoptHistory(&State{Task: task}).appendMessage(firstMessage(task))
	if bare := adoptHistory(&State{Task: spec.Task{ID: spec.Root, Goal: "g", Limits: task.Limits}}).appendMessage(firstMessage(task)); s.inputBound() < bare.inputBound()+budget.Text(schema) {
		t.Errorf("with a schema %d, without one %d", s.inputBound(), bare.inputBound())
	}
	s.Cuts, s.Phase, s.Reservation, s.Open = 1, Thinking, 1, true // a reply that was cut goes on without the schema
	if s.replySchema() != "" {
		t.Fatal("the schema is sent with a continuation")
	}
	s, _ = settleReservation(s, model.Reply{UsageKnown: true, Usage: model.Usage{Input: 3000, Output: 10}}, 0)
	s.Cuts = 0
	s = s.appendMessage(model.Message{Role: model.User, Text: "result"})
	if need := 3010 + budget.Text(schema); s.inputBound() < need {
		t.Errorf("the prompt is bound by %d, and with its schema it may have %d", s.inputBound(), need)
	}
}

// What a provider says of its own where tools are listed is held for, though no
// byte of it is sent (P21); what it reported has it in it.
func TestReservationCoversTheProvidersToolPrompt(t *testing.T) {
	task := spec.Task{ID: spec.Root, Goal: "g", Tools: []model.ToolSpec{{Name: "look", Schema: `{"type":"object"}`, Class: model.Read}}}
	task.Limits = task.Limits.WithDefaults(0)
	bare := FirstAttemptRequest(task).Input
	task.Model.Frame = 1024
	if got := FirstAttemptRequest(task).Input; got != bare+1024 {
		t.Errorf("a prompt with tools is bound by %d, without what is added %d", got, bare)
	}
	other := task
	other.Tools = nil
	plain := other
	plain.Model.Frame = 0
	if got, want := FirstAttemptRequest(other).Input, FirstAttemptRequest(plain).Input; got != want {
		t.Errorf("without tools %d is held, want %d", got, want)
	}
	s := adoptHistory(&State{Task: task}).appendMessage(firstMessage(task))
	s.Phase, s.Reservation, s.Open = Thinking, 1, true
	s, _ = settleReservation(s, model.Reply{UsageKnown: true, Usage: model.Usage{Input: 700, Output: 10}}, 0)
	if got := s.inputBound(); got >= 710+1024 {
		t.Errorf("after a report of 700 tokens the prompt is bound by %d", got)
	}
}
