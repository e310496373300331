package runfile

import (
	"cmp"
	"slices"

	"github.com/troupe-run/troupe/mailbox"
)

// Cut returns the largest consistent cut of the logs of a run that moves on while it is read: a state that the
// run could have been in. The logs were read twice, one log after the other: first, then again.
//
// The cut begins with the entries of the first read. It drops the end of a log from the first entry on that
// names something outside of the cut: a message whose cause is not in the log of its sender, or an ack floor
// that covers a message which its receiver does not have. Whatever an entry of the first read calls
// acknowledged was stored before the second read began, so the second read shows every such message.
func Cut(first, again []mailbox.Message) []mailbox.Message {
	c := newCut(again)
	for _, m := range first {
		if l := c.logs[m.To.Bare()]; l != nil {
			l.through = max(l.through, m.Place)
		}
	}
	for _, l := range c.logs {
		if i := slices.IndexFunc(l.entries, func(e cutEntry) bool { return e.message.Place > l.through }); i >= 0 {
			l.kept = i
		}
	}
	for c.shrink() {
	}
	return c.keptEntries()
}

// newCut returns the cut that has all entries.
func newCut(entries []mailbox.Message) cut {
	c := cut{logs: map[mailbox.Address]*cutLog{}}
	for _, m := range entries {
		at := m.To.Bare()
		if c.logs[at] == nil {
			c.logs[at] = &cutLog{}
			c.order = append(c.order, at)
		}
		l := c.logs[at]
		l.entries = append(l.entries, decodeForCut(m))
		l.kept = len(l.entries)
	}
	return c
}

// keptEntries returns the entries of the cut, log by log.
func (c *cut) keptEntries() (kept []mailbox.Message) {
	for _, at := range c.order {
		for _, e := range c.logs[at].entries[:c.logs[at].kept] {
			kept = append(kept, e.message)
		}
	}
	return kept
}

// cut is a cut that shrinks until it is consistent.
type cut struct {
	logs  map[mailbox.Address]*cutLog
	order []mailbox.Address // of logs, as they were read
}

// cutLog is one log; the cut has its first entries.
type cutLog struct {
	entries []cutEntry
	kept    int
	through uint64 // place of the last entry of the first read
}

// cutEntry is what a cut must know of an entry.
type cutEntry struct {
	message mailbox.Message
	from    mailbox.Address // of messages; "": an own entry, a command, or bytes that do not decode
	items   []mailbox.Item  // of messages
	floor   uint64          // of an own entry
}

func decodeForCut(m mailbox.Message) cutEntry {
	e, err := mailbox.Decode(m.Data)
	switch from := e.From.Bare(); {
	case err != nil || from == "" || from.Run() != m.To.Run():
		return cutEntry{message: m}
	case from == m.To.Bare():
		return cutEntry{message: m, floor: e.Floor}
	default:
		return cutEntry{message: m, from: from, items: e.Items}
	}
}

// shrink drops entries that are not consistent with the other logs, and reports whether it dropped any.
func (c *cut) shrink() (changed bool) {
	lost := c.lostMessages()
	for at, l := range c.logs {
		earliest, isLost := lost[at]
		for i, e := range l.entries[:l.kept] {
			if isLost && e.floor >= earliest || c.isUncaused(e) { //mutant:cut-consistent
				l.kept, changed = i, true
				break
			}
		}
	}
	return changed
}

// isUncaused reports whether an entry is the effect of an entry outside of the cut. A sender whose log was shorter
// at both reads has lost its end: that is the state of the run, and no reason to drop anything.
func (c *cut) isUncaused(e cutEntry) bool {
	sender := c.logs[e.from]
	return sender != nil && slices.ContainsFunc(e.items, func(i mailbox.Item) bool {
		return i.N > uint64(sender.kept) && i.N <= uint64(len(sender.entries))
	})
}

// lostMessages returns, for each sender, the index of the earliest entry that caused a message which only the part of
// its receiver's log behind the cut has.
func (c *cut) lostMessages() map[mailbox.Address]uint64 {
	lost := map[mailbox.Address]uint64{}
	for _, l := range c.logs {
		has := map[mailbox.Address]mailbox.Item{}
		for i, e := range l.entries {
			for _, item := range e.items {
				switch newest := has[e.from]; {
				case compareIdentity(item, newest) <= 0: // sent again
				case i < l.kept:
					has[e.from] = item
				case lost[e.from] == 0 || item.N < lost[e.from]:
					lost[e.from] = item.N
				}
			}
		}
	}
	return lost
}

// compareIdentity orders the messages of one sender (PROTOCOL P6).
func compareIdentity(a, b mailbox.Item) int {
	return cmp.Or(cmp.Compare(a.N, b.N), cmp.Compare(a.I, b.I))
}
