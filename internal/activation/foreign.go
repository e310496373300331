package activation

import (
	"errors"
	"fmt"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// A log may be newer than this program: it may hold an entry of a newer form, or an own entry
// of an unknown kind. A program that stepped such an entry nevertheless would decide differently
// from the programs that know it. So an activation that is to act stops there and says why
// (PROTOCOL P10); a reader that only watches reads on.

// rejectNewerForm reports an entry that does not decode, if it is of a newer form.
func (l *LogReader) rejectNewerForm(err error) bool {
	if l.Start == "" || !errors.Is(err, mailbox.ErrForm) {
		return false
	}
	l.noteNewer(err.Error())
	return l.Phase == Superseded
}

// rejectUnknownFact reports an own item of a kind that this program does not know.
func (l *LogReader) rejectUnknownFact(item mailbox.Item) bool {
	if l.Start == "" || isKnownKind(item.Kind) {
		return false
	}
	l.noteNewer(fmt.Sprintf("an entry of kind %q", item.Kind))
	return true
}

// noteNewer notes what is newer than this program. Entries before the activation's own claim may
// be damaged and only look newer: a later hash shows the damage, and the damage then counts
// instead.
func (l *LogReader) noteNewer(why string) {
	why = fmt.Sprintf("entry %d of %s: %s", l.N, l.Addr, why)
	switch {
	case l.Phase == Active:
		l.Phase, l.Foreign = Superseded, why
	case l.newerBeforeClaim == "":
		l.newerBeforeClaim = why
	}
}

// isKnownKind reports whether a machine of this program handles a kind.
func isKnownKind(kind string) bool {
	nothing := func(any) error { return nil }
	_, a, _ := agent.Decode(kind, nothing)
	_, s, _ := supervisor.Decode(kind, nothing)
	return a || s
}
