package jetstream

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// copyTimes is a log handler that records when appends were sent again.
type copyTimes struct {
	slog.Handler
	start time.Time

	mu sync.Mutex // timers fire on goroutines of their own
	at []time.Duration
}

func (c *copyTimes) Enabled(context.Context, slog.Level) bool { return true }

func (c *copyTimes) Handle(_ context.Context, r slog.Record) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Level == slog.LevelWarn {
		c.at = append(c.at, time.Since(c.start).Round(time.Millisecond))
	}
	return nil
}

// TestCopiesOfAnAppendComeEverMoreSlowly: a server that is only slow stores every copy. With
// a fixed interval, 10,000 appends became 70,000 entries under the race detector.
func TestCopiesOfAnAppendComeEverMoreSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := &copyTimes{start: time.Now()}
		a := &appender{retry: time.Second, logger: slog.New(seen), inFlight: map[uint64]*pendingAppend{}}
		a.timer = time.AfterFunc(time.Hour, a.sendOverdue)
		a.timer.Stop()
		a.queueAppend(t.Context(), nil, "run.a", nil, func(uint64, error) {})
		<-time.After(40 * time.Second) // of the bubble
		a.resendAll()                  // a connection is back: at once, and then as at first
		<-time.After(4 * time.Second)  // of the bubble
		synctest.Wait()
		a.mu.Lock()
		a.closed = true
		a.timer.Stop()
		a.mu.Unlock()
		var want []time.Duration
		for _, s := range []int{1, 3, 7, 15, 23, 31, 39, 40, 41, 43} {
			want = append(want, time.Duration(s)*time.Second)
		}
		if !slices.Equal(seen.at, want) {
			t.Errorf("copies after %v, want %v", seen.at, want)
		}
	})
}

// TestCopiesDueTogetherKeepTheirOrder: after a reconnect, the appends go out in the order in
// which they were made.
func TestCopiesDueTogetherKeepTheirOrder(t *testing.T) {
	var due dueAppends
	start := time.Now()
	var made []*pendingAppend
	for token := range uint64(1000) {
		l := &pendingAppend{token: token}
		made = append(made, l)
		due.schedule(l, start.Add(time.Duration(token*7%13)*time.Second))
	}
	for _, l := range made {
		if l.token%3 == 0 {
			due.remove(l)
		}
	}
	for _, l := range due.all() {
		due.schedule(l, start)
	}
	var got []uint64
	for _, l := range due.removeDue(start) {
		got = append(got, l.token)
	}
	if _, left := due.next(); left || len(got) != 666 || !slices.IsSorted(got) {
		t.Errorf("%d appends in the order %v", len(got), got)
	}
}
