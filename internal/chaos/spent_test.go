package main

import (
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/supervisor"
)

// The judge of purses sees each way in which a limit could be broken.
func TestThePurseSeesWhatIsSpentTwice(t *testing.T) {
	const each = inputTokens + outputTokens
	whole := spent{reason: agent.TokenBudget, agents: purseAgents, waited: 3, died: 1, granted: 12, replied: 10, asked: 11, limit: 5000, used: 10*each + 900, unknown: 900}
	if bad := whole.judge(); len(bad) > 0 {
		t.Fatalf("a purse that is whole: %q", bad)
	}
	for name, spoil := range map[string]func(*spent){
		"more than the limit":         func(s *spent) { s.limit = s.used - 1 },
		"an overrun":                  func(s *spent) { s.overrun = 1 },
		"a lease that stays open":     func(s *spent) { s.held = 1 },
		"a request without a lease":   func(s *spent) { s.granted = s.asked - 1 },
		"a settlement that was twice": func(s *spent) { s.used += each },
		"a settlement that is gone":   func(s *spent) { s.used -= each },
		"what the double counted":     func(s *spent) { s.asked, s.granted = 100, 100 },
		"an agent that is gone":       func(s *spent) { s.agents-- },
		"another end":                 func(s *spent) { s.reason = agent.Timeout },
		"no death":                    func(s *spent) { s.died = 0 },
		"no race":                     func(s *spent) { s.waited = 0 },
		"a step beyond the limit":     func(s *spent) { s.problems = []string{"more is spent and held than the limit"} },
	} {
		s := whole
		if spoil(&s); len(s.judge()) == 0 {
			t.Errorf("%s: nothing was found", name)
		}
	}
}

// The judge of poisons sees a run that is not parked, nodes that die, lives without
// an end, and others who suffer.
func TestThePoisonIsSeen(t *testing.T) {
	parked := &supervisor.Result{Reason: agent.ResumeUnsafe}
	whole := poisoning{result: parked, lives: deathsMax}
	if bad := whole.judge(); len(bad) > 0 {
		t.Fatalf("a poison that did no harm: %q", bad)
	}
	for name, p := range map[string]poisoning{
		"no end":                {lives: 1},
		"it went on":            {result: &supervisor.Result{Reason: agent.Completed}},
		"a node died":           {result: parked, died: 1},
		"four nodes died":       {result: parked, died: deathsMax + 1, kills: true},
		"it was tried for ever": {result: parked, lives: livesMax + 1},
	} {
		if len(p.judge()) == 0 {
			t.Errorf("%s: nothing was found", name)
		}
	}
	if suffered(time.Second, poisonCost*time.Second) || !suffered(time.Second, poisonCost*time.Second+1) {
		t.Error("others may take as much longer as poisonCost says, and no more")
	}
}
