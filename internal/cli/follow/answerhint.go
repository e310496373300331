package follow

import (
	"fmt"

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
			a.Say(a.ErrStyle.Yellow(fmt.Sprintf("%s asks: %s", term.CleanLine(m.Name), term.QuestionLine(s.QuestionText(run, m)))))
			decision, others := "approve", `   # or deny, skip, "a text"`
			if m.Query.Rule != "" && m.Query.Approvals < 2 { // what two people must approve, no rule of one allows
				others += "; --always run or --always project approves calls like it, too"
			}
			if q := m.Query; q.Digest == "" && q.Reason == spec.NeedsHuman && q.Call != "" { // any text answers what an agent asks
				decision, others = `"your answer"`, "   # or skip"
			}
			a.Say("answer it: " + s.Command(fmt.Sprintf("answer %s %s %s --agent %s", run, term.CleanLine(m.Query.Query), decision, term.CleanLine(string(m.ID)))) + others)
		}
	}
	a.Say("then continue: " + s.Command("run --resume "+run))
}
