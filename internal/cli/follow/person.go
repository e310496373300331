package follow

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/request"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/term"
)

// terminalUser is the user at the terminal, to whom the command can put questions.
type terminalUser struct {
	console *console.Console
	in      *bufio.Reader
	answers chan typedAnswer
	open    *client.Question
	settled map[string]bool // queries that were answered here
	away    bool            // the input has ended
}

// typedAnswer is a person's answer.
type typedAnswer struct {
	question client.Question
	text     string
	err      error
}

func (p *terminalUser) isAsking() bool { return p != nil && p.open != nil }

func (p *terminalUser) pendingAnswers() <-chan typedAnswer {
	if p == nil {
		return nil
	}
	return p.answers
}

// askNext puts the first open question of the run, unless one is on the screen.
func (p *terminalUser) askNext(s *session.Session, f *Follower) error {
	if p.open != nil {
		return nil
	}
	list, err := s.Questions(s.Context)
	if err != nil {
		return err
	}
	for _, q := range list {
		if q.RunID == f.run && !p.settled[q.Agent+" "+q.Query] {
			f.Settle()
			p.putQuestion(q, f.tree.AgentName(q.Agent))
			return nil
		}
	}
	return nil
}

func (p *terminalUser) putQuestion(q client.Question, name string) {
	if p.in == nil {
		p.in, p.settled = bufio.NewReader(p.console.In), map[string]bool{}
	}
	p.open = &q
	p.console.Say(p.console.ErrStyle.Yellow("? "+term.CleanLine(name)+" asks: ") + term.CleanText(q.Question))
	// What was typed before the question could be read does not answer it.
	dropTyped(p.console.In)
	_, _ = p.in.Discard(p.in.Buffered())
	// The prompt is on the line of the answer.
	_, _ = fmt.Fprint(p.console.Err, p.console.ErrStyle.Dim(answerWords(q)))
	go func() {
		text, err := p.in.ReadString('\n')
		p.answers <- typedAnswer{q, strings.TrimSpace(text), err}
	}()
}

// answerWords says how a question can be answered.
func answerWords(q client.Question) string {
	switch {
	case q.Digest == "":
		return "  approve, deny, skip, or text: "
	case q.Rule == "":
		return "  y once, n [REASON] no, s skip, or the result as text: "
	}
	return "  always: " + term.CleanLine(q.Rule) + "\n  y once, a always in this run, p always in this directory, n [REASON] no, s skip, or the result as text: "
}

// sendAnswer forwards an answer. An empty line repeats the question; the end of the input
// means that no person is present.
func (p *terminalUser) sendAnswer(s *session.Session, d typedAnswer) error {
	p.open = nil
	switch {
	case d.err != nil && d.text == "":
		p.away = true
		p.console.Say("")
		return nil
	case d.text == "":
		return nil
	}
	p.settled[d.question.Agent+" "+d.question.Query] = true
	return request.SendAnswer(s.Context, s, request.ParseDecision(d.question, d.text), p.console.Say)
}
