package modelhttp

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/troupe-run/troupe/model"
)

// waitKind says what a watchdog waits for.
type waitKind int

const (
	nextLine    waitKind = iota // or the headers, or the first byte
	nextContent                 // a piece of the reply
	wholeReply
	waitKinds
)

// watchdog fails an attempt that waits too long for one of several things. One timer serves them all. It is set anew only
// for a wait that ends before it fires: a stream extends its waits with each line, and a timer that fires too
// early looks at them again.
type watchdog struct {
	fail context.CancelCauseFunc

	mu    sync.Mutex
	timer *time.Timer
	fires time.Time // zero while the timer is not set
	waits [waitKinds]wait
}

// wait is one thing that an attempt waits for.
type wait struct {
	what  string
	limit time.Duration
	due   time.Time // zero: it waits for no such thing
}

// expect fails the attempt after d, unless expect is called with the same kind, or stop, before.
func (w *watchdog) expect(kind waitKind, what string, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	due := time.Now().Add(d)
	w.waits[kind] = wait{what, d, due}
	if w.fires.IsZero() || due.Before(w.fires) {
		w.set(due, d)
	}
}

// set lets the timer fire.
func (w *watchdog) set(at time.Time, after time.Duration) {
	w.fires = at
	if w.timer == nil {
		w.timer = time.AfterFunc(after, w.expire)
		return
	}
	w.timer.Reset(after)
}

// stop expects nothing more.
func (w *watchdog) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waits = [waitKinds]wait{}
	if w.fires = (time.Time{}); w.timer != nil {
		w.timer.Stop()
	}
}

// expire fails the attempt if a wait is over; otherwise the timer waits for the next.
func (w *watchdog) expire() {
	w.mu.Lock()
	now, next := time.Now(), wait{}
	for _, one := range w.waits {
		if !one.due.IsZero() && (next.due.IsZero() || one.due.Before(next.due)) {
			next = one
		}
	}
	w.fires = time.Time{}
	late := !next.due.IsZero() && !now.Before(next.due)
	if !late && !next.due.IsZero() {
		w.set(next.due, next.due.Sub(now))
	}
	w.mu.Unlock()
	if late {
		w.fail(&model.Error{Class: model.Network, Message: fmt.Sprintf("no %s within %s", next.what, next.limit)})
	}
}
