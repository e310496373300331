package follow

import (
	"fmt"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/term"
)

// PrintAnswerHint says that a run waits for a person, and how to continue it. The commands work when they are pasted.
func PrintAnswerHint(a *console.Console, s *session.Session, run string, end Ending) {
	if !end.parked {
		return
	}
	for _, m := range end.Result.Agents {
		if m.Query != nil {
			a.Say(a.ErrStyle.Yellow(fmt.Sprintf("%s asks: %s", term.CleanLine(m.Name), term.QuestionLine(questionOf(s, run, m)))))
			a.Say("answer it: " + s.Command(fmt.Sprintf("answer %s %s approve --agent %s", run, term.CleanLine(m.Query.Query), term.CleanLine(string(m.ID)))) +
				`   # or deny, skip, "a text"`)
		}
	}
	a.Say("then continue: " + s.Command("run --resume "+run))
}

// questionOf returns the open question of an agent. That of a call whose outcome is unknown comes from the node, which adds
// what the call is.
func questionOf(s *session.Session, run string, m event.AgentResult) string {
	if m.Query.Reason == spec.ResumeUnsafe {
		list, err := s.Questions(s.Context)
		for _, q := range list {
			if err == nil && q.RunID == run && q.Agent == string(m.ID) && q.Query == m.Query.Query {
				return q.Question
			}
		}
	}
	return m.Query.Question
}
