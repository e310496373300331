package life

import (
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/mailbox"
)

// A log that is closed is still spoken to where another one lost its tail (PROTOCOL
// P25): a supervisor that does not know of an agent's end asks for it, and an agent
// that does not know of the end of its run waits for an answer. Each is answered once
// for each entry; nothing of the machine changes.

// Closing is the entry that ends this life's log. An agent's carries its last word, so
// that it can be repeated when nothing else is left of the log.
func (l *Life) Closing() (agent.Closed, error) {
	c := agent.Closed{N: l.N}
	if l.last == nil {
		return c, nil
	}
	var f agent.Finish
	if err := mailbox.Unmarshal(l.last.Body, &f); err != nil {
		return c, fmt.Errorf("life: the last word of %s: %w", l.Addr, err)
	}
	c.Finish, c.FromN, c.FromI = &f, l.last.N, l.last.I
	return c, nil
}

// keepLast remembers an agent's Finish among the letters of an entry.
func (l *Life) keepLast(letters []Letter) {
	for i := range letters {
		if letters[i].Kind == (agent.Finish{}).Kind() {
			last := letters[i]
			l.last = &last
		}
	}
}

// buried reads the tombstone of a log, which may carry the last word of its agent.
func (l *Life) buried(item mailbox.Item) {
	l.Phase, l.Buried = Closed, true
	var c agent.Closed
	if mailbox.Unmarshal(item.Body, &c) != nil || c.Finish == nil {
		return
	}
	body, err := mailbox.Marshal(*c.Finish)
	if err != nil {
		return // it was one letter before, and is none now: then there is no last word
	}
	l.last = &Letter{To: mailbox.At(l.Addr.Run(), mailbox.Super), N: c.FromN, I: c.FromI, Kind: c.Finish.Kind(), Body: body}
}

// spokenTo says what a closed log answers to an entry.
func (l *Life) spokenTo(data []byte, out *Read) {
	e, err := mailbox.Decode(data)
	if err != nil || e.From == l.Addr || e.From.Run() != l.Addr.Run() {
		return
	}
	switch super := l.Addr.Agent() == mailbox.Super; {
	case super:
		l.dismiss(e, out)
	case e.From.Agent() != mailbox.Super || !asksForEnd(e):
	case l.Buried && !slices.ContainsFunc(e.Items, asksStatus): // a late letter to a run that was deleted
	case l.last != nil:
		out.Repeat = []Letter{*l.last} //mutant:closed-log-is-mute
	default:
		out.Lost = true
	}
}

func asksStatus(item mailbox.Item) bool { return item.Kind == (agent.StatusAsked{}).Kind() }

// askedAgain notes that the supervisor asks an agent which has ended, and whose log is
// not closed yet: the answer follows the entry that closes it.
func (l *Life) askedAgain(item mailbox.Item, out *Read) {
	out.asked = out.asked || asksStatus(item) && l.machine.Ended()
}

// dismiss ends an agent that waits for a run which has ended, and those above it, which
// may wait for it. They count that end whatever they heard before: see halts.
func (l *Life) dismiss(e mailbox.Entry, out *Read) {
	m, waits := l.marks[e.From], false
	for _, item := range e.Items {
		life := activation(item)
		_, heard := m.lives[life]
		switch fresh := m.below(item.N, item.I); {
		case fresh:
			m.n, m.i = item.N, item.I
			fallthrough
		case life != "" && !heard: // its log is shorter than what was heard from it
			waits = (waits || wantsAnswer(item)) && item.Kind != agent.Finish{}.Kind()
		}
	}
	if l.Phase == Closed { // nobody else counts any more what was read
		l.marks[e.From] = m
	}
	if !waits {
		return
	}
	f := agent.Canceled{Why: "the run has ended", Now: true, As: agent.LogDamaged}
	body, err := mailbox.Marshal(f)
	if err != nil {
		panic("life: a cancel does not encode: " + err.Error())
	}
	id := agent.ID(e.From.Agent())
	for _, to := range append([]agent.ID{id}, id.Above()...) {
		at := mailbox.At(l.Addr.Run(), string(to)).In(e.From.Pool())
		out.Repeat = append(out.Repeat, Letter{To: at, N: l.N, Kind: f.Kind(), Body: body})
	}
}

// Reopens reports whether an entry that came to a closed log wants an answer of it.
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

// asksForEnd: the supervisor waits for this agent by what it says. After the end of
// a damaged run it waits for nobody.
func asksForEnd(e mailbox.Entry) bool {
	return slices.ContainsFunc(e.Items, func(item mailbox.Item) bool {
		var f agent.Canceled
		return item.Kind != f.Kind() || mailbox.Unmarshal(item.Body, &f) != nil || f.As != agent.LogDamaged
	})
}

// wantsAnswer: whoever says this goes on, or waits.
func wantsAnswer(item mailbox.Item) bool {
	switch item.Kind {
	case agent.Reserve{}.Kind(), agent.Delegate{}.Kind(), agent.Send{}.Kind(), agent.ProposeStop{}.Kind(),
		agent.Vouch{}.Kind(), agent.Park{}.Kind(), agent.Status{}.Kind():
		return true
	case agent.Back{}.Kind():
		var b agent.Back
		return mailbox.Unmarshal(item.Body, &b) == nil && b.Ended == nil && b.Damaged == ""
	}
	return false
}

// halts reports the first end of a run whose own log is damaged: that log may be shorter
// than what was heard from it, so its identity says nothing.
func (l *Life) halts(from mailbox.Address, item mailbox.Item) bool {
	var f agent.Canceled
	if l.halted || from.Agent() != mailbox.Super || item.Kind != f.Kind() || mailbox.Unmarshal(item.Body, &f) != nil || f.As != agent.LogDamaged {
		return false
	}
	l.halted = true
	return true
}
