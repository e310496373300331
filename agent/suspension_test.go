package agent_test

import (
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/agent"
)

// continuations are what an agent may continue with, by what it waits for.
var continuations = map[agent.Awaited][]agent.Continuation{
	"":                      {""},
	agent.AwaitsPerson:      {agent.ThenTurn, agent.ThenCalls},
	agent.AwaitsDriftAnswer: {agent.ThenGrant, agent.ThenAttempt, agent.ThenCalls, agent.ThenHooks, agent.ThenHeld},
	agent.AwaitsOthers:      {agent.ThenTurn},
	agent.AwaitsThrottle:    {agent.ThenTurn},
	agent.AwaitsRetry:       {agent.ThenTurn},
}

// checkSuspended checks that the parts of a suspension belong together: the struct
// itself does not rule out the other combinations.
func checkSuspended(s agent.State) error {
	w := s.Suspended
	asks := w.Why == agent.AwaitsPerson || w.Why == agent.AwaitsDriftAnswer
	switch {
	case (s.Phase == agent.Waiting) != (w.Why != ""):
		return fmt.Errorf("in phase %q it is suspended for %q", s.Phase, w.Why)
	case !slices.Contains(continuations[w.Why], w.Then):
		return fmt.Errorf("suspended for %q, it continues with %q", w.Why, w.Then)
	case (w.Question != agent.Park{}) != asks:
		return fmt.Errorf("suspended for %q, it asks %+v", w.Why, w.Question)
	case w.Why == agent.AwaitsPerson && (w.Then == agent.ThenCalls) != (w.Question.Call != ""):
		return fmt.Errorf("asked about call %q, it continues with %q", w.Question.Call, w.Then)
	case w.Due != 0 && w.Why != agent.AwaitsRetry:
		return fmt.Errorf("suspended for %q, it is due at %d", w.Why, w.Due)
	case (w.Held != nil) != (w.Then == agent.ThenHeld):
		return fmt.Errorf("it continues with %q and holds %+v", w.Then, w.Held)
	case w.Held == nil:
		return nil
	case w.Held.Why != agent.AwaitsPerson && w.Held.Why != agent.AwaitsRetry:
		return fmt.Errorf("it holds a wait for %q", w.Held.Why)
	}
	s.Suspended = *w.Held
	return checkSuspended(s)
}
