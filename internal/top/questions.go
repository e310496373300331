package top

import (
	"fmt"
	"strings"
	"time"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/term"
)

// questionKey identifies a question.
func questionKey(q client.Question) string { return q.RunID + "\x00" + q.Agent + "\x00" + q.Query }

// questionRows returns the keys of the questions that the view shows: those of the open run, or of all.
func questionRows(m *Model) (keys []string) {
	for _, q := range m.questions {
		if (m.view == viewInbox || q.RunID == m.run.id) && m.matches(q.RunID+" "+q.Agent+" "+q.Question) {
			keys = append(keys, questionKey(q))
		}
	}
	return keys
}

// selectedQuestion returns the question that is selected.
func selectedQuestion(m *Model) (client.Question, bool) {
	if m.view != viewInbox && m.view != viewQuestions {
		return client.Question{}, false
	}
	return m.findQuestion(m.lists[m.view].selected())
}

func (m *Model) findQuestion(key string) (client.Question, bool) {
	for _, q := range m.questions {
		if questionKey(q) == key {
			return q, true
		}
	}
	return client.Question{}, false
}

// needsDecision reports whether a question is approved or denied: it is about a call, or about how to go on after a crash.
func needsDecision(q client.Question) bool {
	return q.Digest != "" || q.Reason == string(spec.ResumeUnsafe) || q.Call != "" && q.Reason != string(spec.NeedsHuman)
}

// questionListHeight returns how many rows the list of questions has; their text has the rest.
func questionListHeight(m *Model) int {
	rows := len(m.lists[m.view].keys)
	return max(1, min(rows, max(3, m.bodyHeight()/3)))
}

// questionRow draws a question in one line.
func questionRow(m *Model, q client.Question, width int) string {
	asked := ""
	if q.AskedMS > 0 {
		asked = term.FormatAge(m.now.Sub(time.UnixMilli(q.AskedMS)))
	}
	return m.style.Dim(term.Pad(shortRun(q.RunID, width), runColumns(width))) + " " + m.style.Bold(term.Pad(cleanLine(q.Agent), agentColumns)) + " " +
		term.Pad(asked, ageColumns) + " " + m.style.Yellow(strings.TrimSpace(term.FormatApprovals(q.Approvals, cleanLine(q.ApprovedBy))+"  "+term.QuestionGist(clip.Prefix(q.Question, eventColumnsMax))))
}

// questionText returns the selected question with all that a person decides about.
func questionText(m *Model) []string {
	q, ok := selectedQuestion(m)
	if !ok {
		return nil
	}
	about := fmt.Sprintf("%s of %s asks (%s)", cleanLine(q.Agent), cleanLine(q.RunID), cleanLine(q.Reason))
	if q.DueMS > 0 {
		about += ", expires in " + term.FormatAge(time.UnixMilli(q.DueMS).Sub(m.now))
	}
	lines := []string{m.style.Dim(about)}
	if approvals := term.FormatApprovals(q.Approvals, q.ApprovedBy); approvals != "" {
		lines = append(lines, m.style.Yellow(approvals+": two different people must approve"))
	}
	if q.Rule != "" && q.Approvals > 1 {
		lines = append(lines, m.style.Dim("a allows in this run: "+cleanLine(q.Rule)))
	} else if q.Rule != "" {
		lines = append(lines, m.style.Dim("a allows in this run, p in the directory: "+cleanLine(q.Rule)))
	}
	text := strings.Trim(term.CleanText(clip.Prefix(q.Question, textBytesMax)), "\n")
	if len(q.Question) > textBytesMax {
		text += fmt.Sprintf("\n… %d bytes more: troupe questions -o json", len(q.Question)-textBytesMax)
	}
	return append(lines, colorDiff(m.style, term.CutLines(text, m.width))...)
}

// questionBody draws the list of questions, and below a line the text of the selected one.
func questionBody(m *Model, height int) []string {
	l := m.lists[m.view]
	if len(l.keys) == 0 {
		if !m.read[viewInbox] {
			return []string{m.style.Dim("reading …")}
		}
		return []string{m.style.Dim("No open questions.")}
	}
	var lines []string
	rows := questionListHeight(m)
	for i := l.top; i < min(l.top+rows, len(l.keys)); i++ {
		if q, ok := m.findQuestion(l.keys[i]); ok {
			lines = append(lines, m.marked(i == l.at, questionRow(m, q, m.width)))
		}
	}
	p := m.pages[m.view]
	room := height - rows - 1
	below := len(p.lines) - p.top - room
	rule := strings.Repeat("─", m.width)
	if below > 0 {
		rule = term.Truncate("── "+term.FormatCount(below, "line")+" below: space "+rule, m.width)
	}
	return append(append(lines, m.style.Dim(rule)), p.visible(room)...)
}

// guardAnswer reports whether the selected question may be answered now. It may not if it has just taken the place of
// another one, which the person may have meant.
func guardAnswer(m *Model, k Key) bool {
	if set := m.lists[m.view].set; !set.IsZero() && k.At.Sub(set) < answerGuard {
		m.notice, m.noticeIsError = "this question has just come: read it, then press "+k.Name+" again", true
		return false
	}
	return true
}

// answer sends a decision about a question.
func (m *Model) answer(q client.Question, d spec.Decision, text, always string) []Effect {
	m.notice = "sending the answer"
	return []Effect{SendAnswer{client.AnswerRequest{RunID: q.RunID, Agent: q.Agent, Query: q.Query, Digest: q.Digest, Decision: d, Text: text, Always: always, By: m.user}}}
}

// decide answers the selected question at once; always is "run" or "project" to approve calls like this one, too.
func decide(m *Model, k Key, d spec.Decision, always string) []Effect {
	q, _ := selectedQuestion(m)
	if !guardAnswer(m, k) {
		return nil
	}
	return m.answer(q, d, "", always)
}

// deny denies the selected question at once, if it is about a decision: another one asks for an answer, and its denial may
// end the agent.
func deny(m *Model, k Key) []Effect {
	if q, ok := selectedQuestion(m); ok && needsDecision(q) {
		return decide(m, k, spec.Deny, "")
	}
	return askDenial(m, k)
}

// askDenial asks for the reason of a denial.
func askDenial(m *Model, k Key) []Effect {
	q, _ := selectedQuestion(m)
	if guardAnswer(m, k) {
		m.prompt = &prompt{label: "no, because (the agent reads it):", done: func(m *Model, text string) []Effect { return m.answer(q, spec.Deny, text, "") }}
	}
	return nil
}

// askAnswer asks for the answer to a question that is about no call.
func askAnswer(m *Model, k Key) []Effect {
	q, _ := selectedQuestion(m)
	if !guardAnswer(m, k) {
		return nil
	}
	m.prompt = &prompt{label: "answer:", done: func(m *Model, text string) []Effect {
		if text == "" {
			m.notice, m.noticeIsError = "no answer was sent: it was empty", true
			return nil
		}
		return m.answer(q, spec.TextOnly, text, "")
	}}
	return nil
}
