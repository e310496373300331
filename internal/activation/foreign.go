package activation

import (
	"errors"
	"fmt"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// A log may be newer than this program: it may hold an entry of a newer form, a task under
// newer rules, or an own entry of an unknown kind. A program that stepped such an entry all
// the same would decide differently from the programs that know it. So an activation that is
// to act stops there and says why (PROTOCOL P10); a reader that only watches reads on.

// rejectNewerForm reports an entry that does not decode, if it is of a newer form.
func (l *LogReader) rejectNewerForm(err error) bool {
	if l.Start == "" || !errors.Is(err, mailbox.ErrForm) {
		return false
	}
	l.noteNewer(err.Error())
	return l.Phase == Superseded
}

// rejectUnknownFact reports an item that this program cannot step as its writer meant it.
func (l *LogReader) rejectUnknownFact(item mailbox.Item, own bool) bool {
	if l.Start == "" {
		return false
	}
	most := l.Rules
	if most == 0 {
		most = spec.Rules
	}
	switch {
	case own && !isKnownKind(item.Kind):
		l.noteNewer(fmt.Sprintf("an entry of kind %q", item.Kind))
	case rulesOf(item) > most:
		l.noteNewer(fmt.Sprintf("rules %d, this node knows up to %d", rulesOf(item), most))
	default:
		return false
	}
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

// rulesOf returns the rules under which an item begins a run or an agent; 0 if it begins
// neither.
func rulesOf(item mailbox.Item) int {
	switch item.Kind {
	case agent.Submitted{}.Kind():
		var f struct {
			Task struct {
				Rules int `msgpack:"v"`
			} `msgpack:"t"`
		}
		if mailbox.Unmarshal(item.Body, &f) == nil {
			return f.Task.Rules
		}
	case supervisor.Opened{}.Kind():
		var f struct {
			Rules int `msgpack:"u"`
		}
		if mailbox.Unmarshal(item.Body, &f) == nil {
			return f.Rules
		}
	}
	return 0
}

// isKnownKind reports whether a machine of this program handles a kind.
func isKnownKind(kind string) bool {
	nothing := func(any) error { return nil }
	_, a, _ := agent.Decode(kind, nothing)
	_, s, _ := supervisor.Decode(kind, nothing)
	return a || s
}
