package activation

import (
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/mailbox"
)

// Other actors still write to a closed log if they lost their own tail (PROTOCOL P25): a
// supervisor that does not know of an agent's end asks for it, and an agent that does not
// know of the end of its run waits for an answer. The log answers each such entry once; the
// state of its machine does not change.

// Closing is the entry that ends this activation's log. An agent's Closed carries its Finish,
// so that the Finish can be repeated when no other entry of the log is left.
func (l *LogReader) Closing() (agent.Closed, error) {
	c := agent.Closed{N: l.N}
	if l.last == nil {
		return c, nil
	}
	var f agent.Finish
	if err := mailbox.Unmarshal(l.last.Body, &f); err != nil {
		return c, fmt.Errorf("activation: the last word of %s: %w", l.Addr, err)
	}
	c.Finish, c.FromN, c.FromI = &f, l.last.N, l.last.I
	return c, nil
}

// keepFinish remembers an agent's Finish among the messages of an entry.
func (l *LogReader) keepFinish(messages []OutboxMessage) {
	for i := range messages {
		if messages[i].Kind == (agent.Finish{}).Kind() {
			last := messages[i]
			l.last = &last
		}
	}
}

// readTombstone reads the tombstone of a log, which may carry the Finish of its agent.
func (l *LogReader) readTombstone(item mailbox.Item) {
	l.Phase, l.Deleted = Closed, true
	var c agent.Closed
	if mailbox.Unmarshal(item.Body, &c) != nil || c.Finish == nil {
		return
	}
	body, err := mailbox.Marshal(*c.Finish)
	if err != nil {
		return // the Finish was one message and does not decode to one now: the log has none
	}
	l.last = &OutboxMessage{To: mailbox.At(l.Addr.Run(), mailbox.Super), N: c.FromN, I: c.FromI, Kind: c.Finish.Kind(), Body: body}
}

// answerAfterClose decides how a closed log answers an entry.
func (l *LogReader) answerAfterClose(data []byte, out *Read) {
	e, err := mailbox.Decode(data)
	if err != nil || e.From == l.Addr || e.From.Run() != l.Addr.Run() {
		return
	}
	switch super := l.Addr.Agent() == mailbox.Super; {
	case super:
		l.cancelStranded(e, out)
	case e.From.Agent() != mailbox.Super || !asksForEnd(e):
	case l.Deleted && !slices.ContainsFunc(e.Items, asksStatus): // a late message to a run that was deleted
	case l.last != nil:
		out.Repeat = []OutboxMessage{*l.last} //mutant:closed-log-is-mute
	default:
		out.Lost = true
	}
}

func asksStatus(item mailbox.Item) bool { return item.Kind == (agent.StatusAsked{}).Kind() }

// noteStatusAsked notes that the supervisor asks for the status of an agent that has ended, but
// whose log is not closed yet: the answer follows the entry that closes the log.
func (l *LogReader) noteStatusAsked(item mailbox.Item, out *Read) {
	out.asked = out.asked || asksStatus(item) && l.machine.Ended()
}

// cancelStranded cancels an agent that waits for a run which has ended, and the agents above it,
// which may wait for it. Each of them counts that cancel whatever it read from the supervisor
// before: see acceptFirstHalt.
func (l *LogReader) cancelStranded(e mailbox.Entry, out *Read) {
	m, waits := l.watermarks[e.From], false
	for _, item := range e.Items {
		activation := activationOf(item)
		_, heard := m.activations[activation]
		switch fresh := m.isBelow(item.N, item.I); {
		case fresh:
			m.n, m.i = item.N, item.I
			fallthrough
		case activation != "" && !heard: // the sender's log is shorter than at an earlier read
			waits = (waits || wantsAnswer(item)) && item.Kind != agent.Finish{}.Kind()
		}
	}
	if l.Phase == Closed { // an open log marks the same messages as read later
		l.watermarks[e.From] = m
	}
	if !waits {
		return
	}
	f := agent.Canceled{Why: "the run has ended", Now: true, As: spec.LogDamaged}
	body, err := mailbox.Marshal(f)
	if err != nil {
		panic("activation: a cancel does not encode: " + err.Error())
	}
	id := spec.ID(e.From.Agent())
	for _, to := range append([]spec.ID{id}, id.Above()...) {
		at := mailbox.At(l.Addr.Run(), string(to)).In(e.From.Pool())
		out.Repeat = append(out.Repeat, OutboxMessage{To: at, N: l.N, Kind: f.Kind(), Body: body})
	}
}

// Reopens reports whether an entry that arrived at a closed log wants an answer from it.
func Reopens(at mailbox.Address, data []byte) bool {
	e, err := mailbox.Decode(data)
	switch {
	case err != nil || e.From == "" || e.From == at || e.From.Run() != at.Run():
		return false
	case at.Agent() == mailbox.Super:
		return slices.ContainsFunc(e.Items, wantsAnswer)
	}
	return e.From.Agent() == mailbox.Super && asksForEnd(e)
}

// asksForEnd reports whether the entry shows that the supervisor waits for this agent. After
// the end of a damaged run, the supervisor waits for no agent.
func asksForEnd(e mailbox.Entry) bool {
	return slices.ContainsFunc(e.Items, func(item mailbox.Item) bool {
		var f agent.Canceled
		return item.Kind != f.Kind() || mailbox.Unmarshal(item.Body, &f) != nil || f.As != spec.LogDamaged
	})
}

// wantsAnswer reports whether the sender of the item is still running or waits for an answer.
func wantsAnswer(item mailbox.Item) bool {
	switch item.Kind {
	case agent.Reserve{}.Kind(), agent.Delegate{}.Kind(), agent.Send{}.Kind(), agent.Backlog{}.Kind(), agent.ProposeStop{}.Kind(),
		agent.VerifyLog{}.Kind(), agent.Park{}.Kind(), agent.Status{}.Kind():
		return true
	case agent.ReportLog{}.Kind():
		var b agent.ReportLog
		return mailbox.Unmarshal(item.Body, &b) == nil && b.Ended == nil && b.Damaged == ""
	}
	return false
}

// isDamagedEnd reports the end of an agent whose log is damaged. That log may be shorter than at an
// earlier read, so the identity of the message proves nothing; and the agent has no other message, if
// the log of the run has lost its tail and with it what the agent said of the damage.
func (l *LogReader) isDamagedEnd(from mailbox.Address, item mailbox.Item) bool {
	var f agent.Finish
	return l.Addr.Agent() == mailbox.Super && from.Run() == l.Addr.Run() && item.Kind == f.Kind() &&
		mailbox.Unmarshal(item.Body, &f) == nil && f.Outcome.Reason == spec.LogDamaged
}

// acceptFirstHalt reports the first end of a run whose own log is damaged: that log may be shorter than
// at an earlier read, so the identity of the message proves nothing.
func (l *LogReader) acceptFirstHalt(from mailbox.Address, item mailbox.Item) bool {
	var f agent.Canceled
	if l.acceptedHalt || from.Agent() != mailbox.Super || item.Kind != f.Kind() || mailbox.Unmarshal(item.Body, &f) != nil || f.As != spec.LogDamaged {
		return false
	}
	l.acceptedHalt = true
	return true
}
