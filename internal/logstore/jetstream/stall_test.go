package jetstream

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/troupe-run/troupe/mailbox"
)

// stallingAppender is an appender without a server whose only append has waited for too long.
func stallingAppender(tell func(mailbox.Stall)) (*appender, *pendingAppend) {
	l := &pendingAppend{subject: "run.a", token: 1, born: time.Now().Add(-time.Minute)}
	return &appender{inFlight: map[uint64]*pendingAppend{1: l}, stalls: stallReports{after: time.Second, tell: tell}}, l
}

// TestStallsAreReportedInOrder: what is told is decided under the lock and said
// without it. Whoever comes first to say something says it in the order of the decisions:
// a node that can write again never says last that it cannot.
func TestStallsAreReportedInOrder(t *testing.T) {
	var told []bool
	a, l := stallingAppender(func(s mailbox.Stall) { told = append(told, !s.Since.IsZero()) })
	a.mu.Lock()
	stalls := a.noteWaited([]*pendingAppend{l}, time.Now())
	delete(a.inFlight, l.token)
	moves := a.noteMoving(true)
	a.mu.Unlock()
	moves() // the second overtakes the first
	stalls()
	if want := []bool{true, false}; !slices.Equal(told, want) {
		t.Errorf("told that it stalls: %v, want %v", told, want)
	}
}

// TestStallHandlerMayAppend: what is decided while somebody is told is told after it, by
// the same caller.
func TestStallHandlerMayAppend(t *testing.T) {
	var told []bool
	var a *appender
	a, l := stallingAppender(func(s mailbox.Stall) {
		told = append(told, !s.Since.IsZero())
		if len(told) == 1 { // as from another goroutine: the answer comes just now
			a.mu.Lock()
			clear(a.inFlight)
			moves := a.noteMoving(true)
			a.mu.Unlock()
			moves()
			if len(told) > 1 {
				t.Error("told that all moves within the word that it stalls")
			}
		}
	})
	a.mu.Lock()
	stalls := a.noteWaited([]*pendingAppend{l}, time.Now())
	a.mu.Unlock()
	stalls()
	if want := []bool{true, false}; !slices.Equal(told, want) {
		t.Errorf("told that it stalls: %v, want %v", told, want)
	}
}

// TestFullStallEndsWithoutAnotherAppend: the last entry of a node was stored as soon
// as there was room, and it has nothing more to write. It does not say for ever that it
// cannot: as long as it does, it takes no run that would have something to write.
func TestFullStallEndsWithoutAnotherAppend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := make(chan bool, 4)
		a, l := stallingAppender(func(s mailbox.Stall) { told <- !s.Since.IsZero() })
		clear(a.inFlight)
		for range 3 { // at 0, 0.6 and 1.2 s
			a.mu.Lock()
			tell := a.turnedAway(l, mailbox.ErrFull, time.Now())
			a.mu.Unlock()
			tell()
			<-time.After(600 * time.Millisecond)
		}
		a.mu.Lock()
		moves := a.noteMoving(true) // too early: one was refused just now
		a.mu.Unlock()
		moves()
		if !<-told || len(told) > 0 {
			t.Fatal("not told once that there is no room")
		}
		select {
		case stalls := <-told:
			if stalls {
				t.Error("told twice that there is no room")
			}
		case <-time.After(time.Minute):
			t.Error("a minute later it still has no room")
		}
	})
}

// TestLeaderStallEndsWithoutAnotherAppend: an append waits for a leader, then
// for room, and is stored; nothing is written after it.
func TestLeaderStallEndsWithoutAnotherAppend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := make(chan bool, 4)
		a, l := stallingAppender(func(s mailbox.Stall) { told <- !s.Since.IsZero() })
		decide := func(f func() func()) {
			a.mu.Lock()
			tell := f()
			a.mu.Unlock()
			tell()
		}
		decide(func() func() { return a.noteWaited([]*pendingAppend{l}, time.Now()) })
		clear(a.inFlight)
		decide(func() func() { return a.turnedAway(l, mailbox.ErrFull, time.Now()) })
		decide(func() func() { return a.noteMoving(true) }) // too early: one was refused just now
		if !<-told || len(told) > 0 {
			t.Fatal("not told once that a letter waits")
		}
		select {
		case stalls := <-told:
			if stalls {
				t.Error("told twice that it stalls")
			}
		case <-time.After(time.Minute):
			t.Error("a minute later it still stalls")
		}
	})
}

// TestStallOutlivesTheCallerOfItsAppend: the caller of the only waiting append gives up. The server
// has stored nothing since, so the stall goes on for a while.
func TestStallOutlivesTheCallerOfItsAppend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := make(chan bool, 4)
		a, l := stallingAppender(func(s mailbox.Stall) { told <- !s.Since.IsZero() })
		a.due.schedule(l, l.due)
		l.done = func(uint64, error) {}
		a.mu.Lock()
		stalls := a.noteWaited([]*pendingAppend{l}, time.Now())
		a.mu.Unlock()
		stalls()
		a.endInFlight(l.token, 0, mailbox.ErrClosed)
		if !<-told || len(told) > 0 {
			t.Fatal("a caller that gave up ended the stall")
		}
		began := time.Now()
		if <-told || time.Since(began) < a.stalls.after {
			t.Errorf("the stall ended after %v", time.Since(began))
		}
	})
}
