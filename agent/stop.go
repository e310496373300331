package agent

import (
	"strings"

	"github.com/troupe-run/troupe/model"
)

// propose says that the agent believes it is done: the task's requirements have
// the first word, then the stop hooks, then the supervisor.
func propose(s State) (State, []Effect) {
	if next, fx, busy := pursue(s); busy {
		return next, fx
	}
	return proposeStop(s)
}

func proposeStop(s State) (State, []Effect) {
	s.Phase = Stopping
	s.Proposal++
	return s, []Effect{ProposeStop{Proposal: s.Proposal, Text: s.answer()}}
}

// stopAllowed ends the loop, unless a user's message came in meanwhile.
func stopAllowed(s State, f StopAllowed) (State, []Effect) {
	if s.Phase != Stopping || f.Proposal != s.Proposal {
		return s, nil
	}
	s.Vetoes = 0
	if len(s.Steers) > 0 && s.Cancel == nil {
		return nextTurn(s, Steering)
	}
	return finish(s, Outcome{Reason: Completed, Text: s.answer()})
}

// stopVetoed goes round once more with the reason as a message. Vetoes are
// counted by the supervisor, which makes the last one final.
func stopVetoed(s State, f StopVetoed) (State, []Effect) {
	if s.Phase != Stopping || f.Proposal != s.Proposal {
		return s, nil
	}
	s.Vetoes++
	if f.Final {
		return finish(s, Outcome{Reason: Vetoed, Text: s.answer(), Partial: true, Detail: f.Why})
	}
	why := f.Why
	if strings.TrimSpace(why) == "" {
		why = "You are not done yet."
	}
	s = s.say(model.Message{Role: model.User, Text: why})
	return nextTurn(s, StopVeto)
}
