package follow

import (
	"fmt"
	"strings"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/term"
)

// inlineLinesMax is how many lines of a question are shown in one line; a longer one, such as a change of a file, keeps
// its lines.
const inlineLinesMax = 4

// PrintAnswerHint says that a run waits for a person, and how to continue it. The commands work when they are pasted.
func (f *Follower) PrintAnswerHint(s *session.Session, end Ending) {
	if !end.parked {
		return
	}
	a := f.console
	for _, m := range end.Result.Agents {
		if m.Query != nil {
			a.Say(a.ErrStyle.Yellow(term.CleanLine(m.Name)+" asks: ") + f.shownQuestion(s.QuestionText(f.run, m), m))
			a.Say("answer it: " + s.Command(answerCommand(f.run, m)) + "   # " + otherAnswers(m.Query))
		}
	}
	if s.Node == nil { // a node elsewhere serves the run
		a.Say("a node then goes on with it: " + s.Command("result --wait "+f.run) + " waits for its result")
		return
	}
	a.Say("then continue: " + s.Command("run --resume "+f.run))
}

// shownQuestion is the text of a question, or its first line if this terminal has shown it already.
func (f *Follower) shownQuestion(text string, m event.AgentResult) string {
	text = strings.TrimSpace(text)
	first, rest, isLong := strings.Cut(text, "\n")
	switch {
	case isLong && f.person.hasShown(string(m.ID), m.Query.Query):
		return term.CleanLine(first) + " (shown above)"
	case strings.Count(text, "\n") < inlineLinesMax:
		return term.QuestionLine(text)
	}
	return term.CleanLine(first) + "\n" + term.CleanText(rest)
}

// asksForText reports whether any text answers a question: an agent asks it.
func asksForText(q *event.OpenQuery) bool {
	return q.Digest == "" && q.Reason == spec.NeedsHuman && q.Call != ""
}

// isOutcomeUnknown reports whether a question is about a call that began and whose result was lost.
func isOutcomeUnknown(q *event.OpenQuery) bool { return q.Reason == spec.ResumeUnsafe && q.Call != "" }

// answerCommand is the command that answers the question of an agent, with the most usual decision.
func answerCommand(run string, m event.AgentResult) string {
	decision := "approve"
	switch {
	case asksForText(m.Query):
		decision = `"your answer"`
	case isOutcomeUnknown(m.Query): // a pasted approval would do it twice
		decision = `"what happened"`
	}
	return fmt.Sprintf("answer %s %s %s --agent %s", run, term.CleanLine(m.Query.Query), decision, term.CleanLine(string(m.ID)))
}

// otherAnswers names the other decisions about a question.
func otherAnswers(q *event.OpenQuery) string {
	switch {
	case asksForText(q):
		return "or skip"
	case isOutcomeUnknown(q):
		return `or skip, which goes on without the call, or approve, which runs it again`
	case q.Digest == "":
		return `or deny, skip, "a text"`
	case q.Rule != "" && q.Approvals < 2: // what two people must approve, no rule of one allows
		return `or deny, skip, "the result of the call"; --always run or --always project approves calls like it, too`
	}
	return `or deny, skip, "the result of the call"`
}
