package jetstream

import (
	"time"
)

// DefaultStallAfter is how long an append may go without an acknowledgement until
// that is told.
const DefaultStallAfter = 5 * time.Second

// Stall says that appends find nobody who stores them: no leader, a broken disk,
// no network. They wait, and nothing is begun that their entries would allow.
type Stall struct {
	// Since is when the append was made that has waited longest; zero: none waits
	// any more.
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
	told  bool
}

// waited tells, once, of letters that have waited too long. mu is held; what it
// returns is called without it.
func (a *appender) waited(late []*letter, now time.Time) func() {
	if a.stalls.told || a.stalls.tell == nil {
		return func() {}
	}
	var oldest *letter
	for _, l := range late {
		if now.Sub(l.born) >= a.stalls.after && (oldest == nil || l.born.Before(oldest.born)) {
			oldest = l
		}
	}
	if oldest == nil {
		return func() {}
	}
	a.stalls.told = true
	s := Stall{Since: oldest.born, Waiting: len(a.flying) + len(a.queue) - a.head, Subject: oldest.subject, Why: oldest.said}
	return func() { a.stalls.tell(s) }
}

// moves tells, once, when something was stored and nothing waits too long any more, or nothing waits at all. mu is
// held; what it returns is called without it.
func (a *appender) moves(stored bool) func() {
	if !a.stalls.told || !stored && len(a.flying)+len(a.queue)-a.head > 0 {
		return func() {}
	}
	now := time.Now()
	for _, l := range a.flying {
		if now.Sub(l.born) >= a.stalls.after {
			return func() {}
		}
	}
	a.stalls.told = false
	return func() { a.stalls.tell(Stall{}) }
}
