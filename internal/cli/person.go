package cli

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/term"
)

// person is the user at the terminal, to whom the command can put questions.
type person struct {
	console *console
	in      *bufio.Reader
	answers chan decision
	open    *client.Question
	settled map[string]bool // queries that were answered here
	away    bool            // the input has ended
}

// decision is a person's answer.
type decision struct {
	question client.Question
	text     string
	err      error
}

func (p *person) asking() bool { return p != nil && p.open != nil }

func (p *person) given() <-chan decision {
	if p == nil {
		return nil
	}
	return p.answers
}

// ask puts the first open question of the run, unless one is on the screen.
func (p *person) ask(s *seat, f *follower) error {
	if p.open != nil {
		return nil
	}
	list, err := s.Questions(s.ctx)
	if err != nil {
		return err
	}
	for _, q := range list {
		if q.RunID == f.run && !p.settled[q.Agent+" "+q.Query] {
			f.rest()
			p.put(q, f.tree.Name(q.Agent))
			return nil
		}
	}
	return nil
}

func (p *person) put(q client.Question, name string) {
	if p.in == nil {
		p.in, p.settled = bufio.NewReader(p.console.in), map[string]bool{}
	}
	p.open = &q
	p.console.say(p.console.errors.Yellow("? "+term.Line(name)+" asks: ") + term.Clean(q.Question))
	// The prompt is on the line of the answer.
	_, _ = fmt.Fprint(p.console.err, p.console.errors.Dim("  approve, deny, skip, or text: "))
	go func() {
		text, err := p.in.ReadString('\n')
		p.answers <- decision{q, strings.TrimSpace(text), err}
	}()
}

// take forwards an answer. An empty line repeats the question; the end of the input
// means that no person is present.
func (p *person) take(s *seat, d decision) error {
	p.open = nil
	switch {
	case d.err != nil && d.text == "":
		p.away = true
		p.console.say("")
		return nil
	case d.text == "":
		return nil
	}
	p.settled[d.question.Agent+" "+d.question.Query] = true
	return s.Answer(s.ctx, answerRequest(d.question.RunID, d.question.Agent, d.question.Query, d.text))
}

// answerRequest parses a decision as people write it.
func answerRequest(run, agent, query, text string) client.AnswerRequest {
	r := client.AnswerRequest{RunID: run, Agent: agent, Query: query, Decision: strings.ToLower(strings.TrimSpace(text))}
	switch r.Decision {
	case "approve", "deny", "skip":
	case "y", "yes":
		r.Decision = "approve"
	case "n", "no":
		r.Decision = "deny"
	default:
		r.Decision, r.Text = "text", text
	}
	return r
}
