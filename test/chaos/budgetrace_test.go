package main

import (
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
)

// The judge of budget races sees each way in which a limit could be broken.
func TestBudgetRaceSeesDoubleSpending(t *testing.T) {
	const each = inputTokens + outputTokens
	whole := raceOutcome{reason: spec.TokenBudget, agents: raceAgents, waited: 3, died: 1, granted: 12, replied: 10, asked: 11, limit: 5000, used: 10*each + 900, unknown: 900}
	if bad := whole.listProblems(); len(bad) > 0 {
		t.Fatalf("a budget race without a fault: %q", bad)
	}
	for name, spoil := range map[string]func(*raceOutcome){
		"more than the limit":             func(s *raceOutcome) { s.limit = s.used - 1 },
		"an overrun":                      func(s *raceOutcome) { s.overrun = 1 },
		"a reservation that stays open":   func(s *raceOutcome) { s.held = 1 },
		"a request without a reservation": func(s *raceOutcome) { s.granted = s.asked - 1 },
		"a settlement that was twice":     func(s *raceOutcome) { s.used += each },
		"a settlement that is gone":       func(s *raceOutcome) { s.used -= each },
		"what the double counted":         func(s *raceOutcome) { s.asked, s.granted = 100, 100 },
		"an agent that is gone":           func(s *raceOutcome) { s.agents-- },
		"another end":                     func(s *raceOutcome) { s.reason = spec.Timeout },
		"no death":                        func(s *raceOutcome) { s.died = 0 },
		"no race":                         func(s *raceOutcome) { s.waited = 0 },
		"a step beyond the limit":         func(s *raceOutcome) { s.problems = []string{"more is spent and held than the limit"} },
	} {
		s := whole
		if spoil(&s); len(s.listProblems()) == 0 {
			t.Errorf("%s: nothing was found", name)
		}
	}
}

// The judge of poisons sees a run that is not parked, nodes that die, lives without
// an end, and others who suffer.
func TestJudgeOfPoisonEntriesFindsProblems(t *testing.T) {
	parked := &event.Result{Reason: spec.ResumeUnsafe}
	whole := poisonOutcome{result: parked, lives: deathsMax}
	if bad := whole.listProblems(); len(bad) > 0 {
		t.Fatalf("a poison that had no effect: %q", bad)
	}
	for name, p := range map[string]poisonOutcome{
		"no end":                {lives: 1},
		"it went on":            {result: &event.Result{Reason: spec.Completed}},
		"a node died":           {result: parked, died: 1},
		"four nodes died":       {result: parked, died: deathsMax + 1, kills: true},
		"it was tried for ever": {result: parked, lives: livesMax + 1},
	} {
		if len(p.listProblems()) == 0 {
			t.Errorf("%s: nothing was found", name)
		}
	}
	if isSlowed(time.Second, poisonCost*time.Second) || !isSlowed(time.Second, poisonCost*time.Second+1) {
		t.Error("others may take as much longer as poisonCost says, and no more")
	}
}
