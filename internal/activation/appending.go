package activation

import (
	"errors"
	"slices"

	"github.com/troupe-run/troupe/mailbox"
)

// requestOwnAppend appends a result to the actor's own log; the result counts once it is read back.
// A superseded activation posts only what a tool itself returned (PROTOCOL P4).
func requestOwnAppend(s *stepContext, o OwnResult) {
	if (s.Reader.Phase == Superseded || o.Start != s.Reader.Start) && o.Kind != "returned" || s.Reader.Phase == Closed {
		return
	}
	id, data, err := encodeOwn(s, o)
	if err != nil {
		handleOwnFailed(s, OwnFailed{o, err})
		return
	}
	if o.Start == s.Reader.Start {
		s.unread = withID(s.unread, id)
	}
	s.addActions(AppendOwn{o, id, data})
}

// handleOwnFailed handles a failed append to the own log: it replaces an entry that is too large by
// a small one that says so, and retries an append that found no room.
func handleOwnFailed(s *stepContext, f OwnFailed) {
	full := errors.Is(f.Err, mailbox.ErrFull)
	if id := s.idOf(f.Own); !full || id == s.final {
		s.unread = withoutID(s.unread, id) // the entry is not in the log, and the activation does not wait for it
	}
	switch {
	case errors.Is(f.Err, mailbox.ErrClosed):
	case full: // the hand-off waits until this entry is in the log
		s.deliverLater(AppendAgain{f.Own})
	case !f.Own.Small && (errors.Is(f.Err, mailbox.ErrTooLarge) || errors.Is(f.Err, mailbox.ErrMalformed)):
		o := f.Own
		o.Small = true
		o.Kind, o.Body = ShrinkResult(o.Kind, o.Body)
		requestOwnAppend(s, o)
	default:
		s.addActions(Fail{f.Own.Kind, f.Err})
	}
}

// appendAgain retries an append that found no room. An earlier attempt whose acknowledgement was lost
// may be in the log: once it was read back, there is nothing to retry.
func appendAgain(s *stepContext, o OwnResult) {
	if id := s.idOf(o); o.Start == s.Reader.Start && id != s.final && !slices.Contains(s.unread, id) {
		return
	}
	requestOwnAppend(s, o)
}

// sendReady sends the messages of the outbox that need not wait for others.
func sendReady(s *stepContext) { sendOutbox(s, false) }

// sendHeld sends the messages of the outbox, also those that waited for others to the same receiver.
func sendHeld(s *stepContext) { sendOutbox(s, true) }

// sendOutbox sends messages of the outbox, with one entry in flight to each receiver.
func sendOutbox(s *stepContext, includeHeld bool) {
	if s.Reader.Phase != Active {
		return
	}
	for {
		to, messages, ok := s.Reader.Outbox.Take(includeHeld)
		if !ok {
			break
		}
		sendEntry(s, to, messages)
	}
	if s.Reader.Outbox.HasHeld() && !s.delayTimerRuns {
		s.delayTimerRuns = true
		s.addActions(Later{SettlementDelay, HoldExpired{}})
	}
}

func sendEntry(s *stepContext, to mailbox.Address, messages []OutboxMessage) {
	data, err := mailbox.Encode(s.Reader.MessageEntry(messages))
	if err != nil {
		s.addActions(Fail{"send", err})
		return
	}
	s.addActions(SendMessages{to, messages, data})
}

// handleMessagesSent marks messages as acknowledged, or sends the same messages again if there was
// no room.
func handleMessagesSent(s *stepContext, f MessagesSent) {
	switch {
	case f.Err == nil:
		s.Reader.Outbox.Acked(f.To)
		advanceOutput(s)
	case errors.Is(f.Err, mailbox.ErrClosed), s.Reader.Phase != Active: // the next activation sends them
	case errors.Is(f.Err, mailbox.ErrFull):
		s.addActions(Warn{"the receiver's log has no room for a message; retrying", []any{"from", s.Reader.Addr, "to", f.To}})
		s.deliverLater(SendAgain{f.To, f.Messages})
	default:
		s.addActions(Fail{"send", f.Err})
	}
}
