package jetstream

import (
	"time"
)

// DefaultStallAfter is how long an append may go without an acknowledgement until
// that is told.
const DefaultStallAfter = 5 * time.Second

// Stall says that appends find nobody who stores them: no leader, no room, a broken disk,
// no network. They wait, or their makers do who were refused, and nothing is begun that
// their entries would allow.
type Stall struct {
	// Since is when the append was made that has waited longest, or when the first was
	// refused of those that were refused one after the other; zero: none waits any more,
	// and none is refused.
	Since time.Time
	// Waiting is how many appends do, Subject where that one is to go, and Why what
	// the server said of it last, "" where it says nothing.
	Waiting int
	Subject string
	Why     string
}

// stalls keeps whether it was told that appends wait, and for what.
type stalls struct {
	after time.Duration
	tell  func(Stall)
	// full and refused are when the first and the last append was refused for want of
	// room, of refusals without a longer pause between them than after.
	full, refused time.Time
	told          bool // by what was decided last, of which left is still to be said
	left          []Stall
	// rest looks again when no append was refused for a while. Without it a node with
	// nothing to write would refuse new runs for ever: only a run would bring an append.
	rest *time.Timer
	// saying: somebody says what is left, and what comes to it meanwhile.
	saying bool
}

func silent() {}

// waited decides, once, to tell of letters that have waited too long. mu is held; what
// it returns says so, and is called without it.
func (a *appender) waited(late []*letter, now time.Time) func() {
	if a.stalls.told || a.stalls.tell == nil {
		return silent
	}
	var oldest *letter
	for _, l := range late {
		if now.Sub(l.born) >= a.stalls.after && (oldest == nil || l.born.Before(oldest.born)) {
			oldest = l
		}
	}
	if oldest == nil {
		return silent
	}
	a.stalls.told = true
	a.stalls.left = append(a.stalls.left, Stall{Since: oldest.born, Waiting: len(a.flying) + len(a.queue) - a.head, Subject: oldest.subject, Why: oldest.said})
	a.lookAgain()
	return a.say
}

// turnedAway decides, once, to tell that there is no room. Who makes an append makes it
// again as a new one, so no letter grows old: what lasts are the refusals. mu is held;
// what it returns says so, and is called without it.
func (a *appender) turnedAway(l *letter, err error, now time.Time) func() {
	if now.Sub(a.stalls.refused) > a.stalls.after {
		a.stalls.full = now
	}
	a.stalls.refused = now
	if a.stalls.told || a.stalls.tell == nil || now.Sub(a.stalls.full) < a.stalls.after {
		return silent
	}
	a.stalls.told = true
	a.stalls.left = append(a.stalls.left, Stall{Since: a.stalls.full, Waiting: len(a.flying) + len(a.queue) - a.head, Subject: l.subject, Why: err.Error()})
	a.lookAgain()
	return a.say
}

// lookAgain arms the look of rested. mu is held.
func (a *appender) lookAgain() {
	if a.stalls.rest == nil {
		a.stalls.rest = time.AfterFunc(a.stalls.after, a.rested)
		return
	}
	a.stalls.rest.Reset(a.stalls.after)
}

// rested decides to tell that there is room, as far as anybody knows, when nothing
// waits and nothing was refused for a while. Who has something to write tries more often.
func (a *appender) rested() {
	a.mu.Lock()
	tell := silent
	if !a.closed && a.stalls.told {
		tell = a.moves(false)
		if a.stalls.told {
			a.lookAgain()
		}
	}
	a.mu.Unlock()
	tell()
}

// moves decides to tell, once, when something was stored and nothing waits too long any
// more, or nothing waits at all, and none was refused for want of room lately. mu is held;
// what it returns says so, and is called without it.
func (a *appender) moves(stored bool) func() {
	if !a.stalls.told || !stored && len(a.flying)+len(a.queue)-a.head > 0 {
		return silent
	}
	now := time.Now()
	if now.Sub(a.stalls.refused) <= a.stalls.after {
		return silent
	}
	for _, l := range a.flying {
		if now.Sub(l.born) >= a.stalls.after {
			return silent
		}
	}
	a.stalls.told = false
	a.stalls.left = append(a.stalls.left, Stall{})
	return a.say
}

// say says what was decided, in the order of the decisions: without mu, for who is told
// may append, but by one caller at a time.
func (a *appender) say() {
	a.mu.Lock()
	if a.stalls.saying {
		a.mu.Unlock()
		return
	}
	a.stalls.saying = true
	for len(a.stalls.left) > 0 {
		s := a.stalls.left[0]
		a.stalls.left = a.stalls.left[1:]
		a.mu.Unlock()
		a.stalls.tell(s)
		a.mu.Lock()
	}
	a.stalls.saying = false
	a.mu.Unlock()
}
