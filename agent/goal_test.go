package agent_test

import (
	"cmp"
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/model"
)

// TestGoalOptionsSurviveArbitraryFacts: with another model to fall back on, calls that
// run again, evidence to show and a budget to use up, no sequence of facts makes
// the loop panic, begin a call twice, send what a provider refuses, send an
// answer back too often, or walk the chain of models back (A15, A22, A27).
//
//behaviour:shows A27
func TestGoalOptionsSurviveArbitraryFacts(t *testing.T) {
	task := ordinary
	task.LoopOptions = spec.LoopOptions{ToolRetries: 3, Fallbacks: []spec.Model{{Name: "n"}, {Name: "o", Output: 10, Price: budget.Price{Known: true, Input: 1}}},
		Require:  spec.Require{Evidence: []spec.Evidence{{Tool: "search"}}, Tries: 2},
		Continue: spec.Continue{Tokens: 2000, Percent: 90, Small: 30, Rounds: 2}}
	task.Tools = append(task.Tools[:len(task.Tools):len(task.Tools)], model.ToolSpec{Name: "note", Class: model.Idempotent, Schema: toolSchema("note")})
	task.Limits.SoftMS, task.Limits.HardMS = 1<<40, 1<<41
	reached := map[string]int{}
	for seed := range sampledSeeds(8000) {
		given := task
		if seed%2 == 0 { // nothing stands in the way of an end
			given.LoopOptions.Require = spec.Require{}
		}
		r := &factSource{data: randomBytes(seed, 900), task: &given}
		var s agent.State
		began := map[string]bool{}
		for n := uint64(1); len(r.data) > 0; n++ {
			r.s = s
			e := agent.Input{N: n, At: int64(n) * 60_000, Activation: s.Activation, Fact: pursuedFact(r)}
			if f, ok := e.Fact.(agent.Resumed); ok {
				e.Activation = f.Activation
			}
			next, stepped := agent.Step(s, e)
			if err := checkStep(s, next, stepped.Effects, began); err != nil {
				t.Fatalf("seed %d, step %d, %s: %v", seed, n, e.Fact.Kind(), err)
			}
			m := next.Task.LoopOptions
			tries, rounds := cmp.Or(m.Require.Tries, spec.RequireTries), cmp.Or(m.Continue.Rounds, spec.ContinueRounds)
			if next.Route < s.Route || next.Goal.Sent > tries || next.Goal.Small >= rounds && next.Goal.Nudges > s.Goal.Nudges {
				t.Fatalf("seed %d: route %d after %d, %+v", seed, next.Route, s.Route, next.Goal)
			}
			for _, c := range next.Calls {
				if c.Tries > 3 || c.Tries > 0 && (c.Class == model.Effect || c.Child != "") {
					t.Fatalf("seed %d: %s of class %s has %d tries", seed, c.Name, c.Class, c.Tries)
				}
				if c.Tries > 0 {
					reached["retry"]++
				}
			}
			if next.Transition != s.Transition {
				reached[string(next.Transition)]++
			}
			if next.Phase == agent.Done && s.Phase != agent.Done {
				reached[string(next.Outcome.Reason)]++
			}
			s = next
		}
	}
	for _, place := range []string{"retry", "model_fallback", "model_retry", "criteria_unmet", "budget_nudge", "evidence_missing", "diminishing_returns"} {
		if reached[place] == 0 {
			t.Errorf("%s was never reached: %v", place, reached)
		}
	}
}

// pursuedFact makes facts more often what this family is about: failures of every
// class, and texts that may be answers.
func pursuedFact(r *factSource) agent.Fact {
	f, b := r.nextFact(), r.nextByte()
	switch f := f.(type) {
	case agent.Failed:
		f.Class = []model.ErrorClass{model.Auth, model.Overload, model.UnknownClass, model.Network, model.BadRequest}[b%5]
		return f
	case agent.Granted:
		f.Closing = f.Closing && b > 220
		f.Output, f.Calls = f.Output+50, f.Calls+2
		return f
	case agent.Replied:
		if b > 90 {
			f.Reply.Message.Calls, f.Reply.Message.Text, f.Reply.Stop = nil, "so it is", model.StopEnd
		}
		return f
	}
	return f
}

// TestAttemptsOfATurnAreBounded: a provider that is never well costs a turn so
// many attempts, each under a reservation of its own, and then the loop ends (A15).
//
//behaviour:shows A15
func TestAttemptsOfATurnAreBounded(t *testing.T) {
	task := spec.Task{ID: spec.Root, Goal: "Compare.", Model: spec.Model{Name: "m"},
		LoopOptions: spec.LoopOptions{Fallbacks: []spec.Model{{Name: "n"}, {Name: "o"}, {Name: "p"}}}}
	s := stepAgent(agent.State{}, agent.Submitted{Task: task})
	attempts := 0
	for s.Phase != agent.Done {
		switch s.Phase {
		case agent.Reserving:
			s = stepAgent(s, agent.Granted{Reservation: s.Reservation, Output: 500})
		case agent.Thinking:
			attempts++
			s = stepAgent(s, agent.Failed{Reservation: s.Reservation, Class: model.Overload, Unbilled: true})
		case agent.Waiting:
			s = stepAgent(s, agent.Woke{Timer: "retry"})
		default:
			t.Fatalf("phase %s", s.Phase)
		}
	}
	if attempts != agent.AttemptsMax || s.Reservation != attempts || s.Outcome.Reason != spec.ModelError {
		t.Errorf("%d attempts, reservation %d, %+v; at most %d are stated", attempts, s.Reservation, s.Outcome, agent.AttemptsMax)
	}
}
