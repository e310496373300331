package actors

import (
	"errors"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-run/troupe/actors/life"
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/mailbox"
)

// A closed log answers who does not know of its end (PROTOCOL P25, life.Read.Repeat).
// Its shell stays until the answer is out.

// answers is what a closed log still has to say: to each receiver, the newest.
type answers struct {
	letters []life.Letter
	lost    bool // the last word is gone
	flying  bool
}

// answered: the answer is out, or there was no room.
type answered struct {
	letter life.Letter
	err    error
}

// answerAgain tries an answer again that found no room.
type answerAgain struct{}

func (a *answers) add(r life.Read) {
	for _, letter := range r.Repeat {
		a.letters = append(slices.DeleteFunc(a.letters, func(l life.Letter) bool { return l.To == letter.To }), letter)
	}
	a.lost = a.lost || r.Lost
}

// close ends the log with the agent's last word in it; without that where it fits no entry.
func (s *shell) close(c actor.Context) {
	last, err := s.life.Closing()
	if err == nil {
		var e mailbox.Entry
		if e, err = s.life.Own(last.Kind(), "", last); err == nil {
			_, err = mailbox.Encode(e)
		}
	}
	if err != nil {
		s.log.Warn("a log is closed without its last word", "actor", s.life.Addr, "error", err)
		last = agent.Closed{N: s.life.N}
	}
	s.append(c, s.own(last.Kind(), "", last))
}

// endAfterAnswers lets a shell go that is through with its log, once it has answered.
func (s *shell) endAfterAnswers(c actor.Context) {
	switch a := &s.answers; {
	case a.flying:
	case len(a.letters) > 0:
		letter := a.letters[0]
		a.letters, a.flying = a.letters[1:], true
		s.sendAnswer(c, letter)
	case a.lost:
		a.lost = false
		c.Send(s.router, hopeless{s.life.Addr, "its log was deleted"})
	default:
		c.Send(s.router, ended{s.life.Addr, s.last})
	}
}

func (s *shell) sendAnswer(c actor.Context, letter life.Letter) {
	self, root := c.Self(), c.ActorSystem().Root
	data, err := mailbox.Encode(s.life.Post([]life.Letter{letter}))
	if err != nil {
		root.Send(self, answered{letter, err})
		return
	}
	s.cfg.Post.Append(s.ctx, letter.To, data, func(_ uint64, err error) { root.Send(self, answered{letter, err}) })
}

func (s *shell) answered(c actor.Context, message any) {
	m, ok := message.(answered)
	if !ok { // there may be room again
		s.after(c)
		return
	}
	s.answers.flying = false
	switch {
	case m.err == nil, errors.Is(m.err, mailbox.ErrClosed):
	case errors.Is(m.err, mailbox.ErrFull):
		s.log.Warn("no room for an answer of a closed log; it is sent again", "from", s.life.Addr, "to", m.letter.To)
		s.answers.letters = append(s.answers.letters, m.letter)
		s.later(c, answerAgain{})
		return
	default:
		s.failed(c, "answer", m.err)
		return
	}
	s.after(c)
}

// reopen lets a log that has ended be read again where somebody of its run speaks to it.
func (r *router) reopen(m mailbox.Message) {
	if _, gone := r.gone[m.To]; !gone {
		return
	}
	if life.Reopens(m.To, m.Data) {
		delete(r.gone, m.To)
	}
}
