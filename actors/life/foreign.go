package life

import (
	"errors"
	"fmt"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// A log may be newer than this program: an entry of a newer form, a task under
// newer rules, an own entry of a kind that is not known. Whoever stepped it all
// the same would decide otherwise than those who know it, so a life that means to
// act falls silent there, and says why (PROTOCOL P10). Who only watches reads on.

// foreign reports an entry that does not decode, if it is of a newer form.
func (l *Life) foreign(err error) bool {
	if l.Start == "" || !errors.Is(err, mailbox.ErrForm) {
		return false
	}
	l.leave(err.Error())
	return l.Phase == Silent
}

// unknown reports an item that this program cannot step as it was meant.
func (l *Life) unknown(item mailbox.Item, own bool) bool {
	if l.Start == "" {
		return false
	}
	most := l.Rules
	if most == 0 {
		most = agent.Rules
	}
	switch {
	case own && !known(item.Kind):
		l.leave(fmt.Sprintf("an entry of kind %q", item.Kind))
	case rulesOf(item) > most:
		l.leave(fmt.Sprintf("rules %d, this node knows up to %d", rulesOf(item), most))
	default:
		return false
	}
	return true
}

// leave notes what is newer. What a life reads before its own claim may be damage
// that only looks so: a hash that comes later says it, and then counts.
func (l *Life) leave(why string) {
	why = fmt.Sprintf("entry %d of %s: %s", l.N, l.Addr, why)
	switch {
	case l.Phase == Alive:
		l.Phase, l.Foreign = Silent, why
	case l.newer == "":
		l.newer = why
	}
}

// rulesOf are those that an item begins a run or an agent under; 0: it begins none.
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

// known: some machine of this program has a meaning for a kind.
func known(kind string) bool {
	nothing := func(any) error { return nil }
	_, a, _ := agent.Decode(kind, nothing)
	_, s, _ := supervisor.Decode(kind, nothing)
	return a || s
}
