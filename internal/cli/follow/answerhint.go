package follow

import (
	"fmt"

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
			a.Say(a.ErrStyle.Yellow(fmt.Sprintf("%s asks: %s", term.CleanLine(m.Name), term.QuestionLine(s.QuestionText(run, m)))))
			a.Say("answer it: " + s.Command(fmt.Sprintf("answer %s %s approve --agent %s", run, term.CleanLine(m.Query.Query), term.CleanLine(string(m.ID)))) +
				`   # or deny, skip, "a text"`)
		}
	}
	a.Say("then continue: " + s.Command("run --resume "+run))
}
