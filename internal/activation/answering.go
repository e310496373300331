package activation

import (
	"errors"
	"slices"

	"github.com/troupe-run/troupe/mailbox"
)

// A closed log still answers actors of its run that have not read its last message (PROTOCOL
// P25, Read.Repeat). Its activation stays until the answer is sent.

// pendingAnswers holds the messages that a closed log still has to send: for each receiver, the
// newest.
type pendingAnswers struct {
	messages []OutboxMessage
	lost     bool // the last message of the log is gone
	flying   bool
}

// addAnswers queues the answers that an entry asks for.
func (a pendingAnswers) addAnswers(r Read) pendingAnswers {
	for _, m := range r.Repeat {
		others := slices.DeleteFunc(slices.Clone(a.messages), func(o OutboxMessage) bool { return o.To == m.To })
		a.messages = append(others, m)
	}
	a.lost = a.lost || r.Lost
	return a
}

// answerNext sends the next answer of a closed log; when all answers are sent, the activation
// ends.
func answerNext(s *stepContext) {
	switch a := &s.answers; {
	case a.flying:
	case len(a.messages) > 0: //mutant:closed-log-ends-before-it-answers
		m := a.messages[0]
		a.messages, a.flying = a.messages[1:], true
		data, err := mailbox.Encode(s.Reader.MessageEntry([]OutboxMessage{m}))
		if err != nil {
			s.addActions(Fail{"answer", err})
			return
		}
		s.addActions(SendAnswer{m, data})
	case a.lost:
		a.lost = false
		s.addActions(ReportHopeless{"its log was deleted"})
	default:
		s.addActions(ReportLogEnded{s.last})
	}
}

func handleAnswerSent(s *stepContext, f AnswerSent) {
	s.answers.flying = false
	switch {
	case f.Err == nil, errors.Is(f.Err, mailbox.ErrClosed):
		advanceOutput(s)
	case errors.Is(f.Err, mailbox.ErrFull):
		s.addActions(Warn{"the log has no room for the answer of a closed log; retrying", []any{"from", s.Reader.Addr, "to", f.Message.To}})
		s.answers.messages = append(slices.Clone(s.answers.messages), f.Message)
		s.deliverLater(AnswerAgain{})
	default:
		s.addActions(Fail{"answer", f.Err})
	}
}
