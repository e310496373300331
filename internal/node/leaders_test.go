package node

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/troupe-run/troupe/internal/bus"
)

// TestANodeWaitsForLeaders: while there is no leader, the start is retried and logged, up
// to a limit; then the error is the true reason. An error that does not go away by itself
// ends the wait immediately.
func TestANodeWaitsForLeaders(t *testing.T) {
	t.Parallel()
	asked, said := 0, 0
	refused := false
	a := leaderWait{wait: time.Minute, refused: func() bool { return refused }, first: time.Millisecond, try: time.Millisecond, pause: time.Millisecond, onWait: func(error, time.Duration) { said++ }}
	err := a.run(t.Context(), func(ctx context.Context) error {
		switch asked++; asked {
		case 1:
			return bus.ErrNoLeader
		case 2: // a bucket without a leader never answers
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	})
	if err != nil || asked != 3 || said != 2 {
		t.Errorf("%v after %d attempts, %d lines", err, asked, said)
	}
	asked = 0
	if err := a.run(t.Context(), func(context.Context) error { asked++; return bus.ErrNoJetStream }); !errors.Is(err, bus.ErrNoJetStream) || asked != 1 {
		t.Errorf("%v after %d attempts", err, asked)
	}
	refused, asked = true, 0
	if err := a.run(t.Context(), func(context.Context) error { asked++; return context.DeadlineExceeded }); err == nil || asked != 1 {
		t.Errorf("%v after %d attempts without the right to ask", err, asked)
	}
	refused = false
	a.wait = 0
	for _, why := range []error{bus.ErrNoLeader, context.DeadlineExceeded} {
		if err := a.run(t.Context(), func(context.Context) error { return why }); !errors.Is(err, bus.ErrNoLeader) || !errors.Is(err, why) || errors.Is(err, bus.ErrNoJetStream) {
			t.Errorf("%v", err)
		}
	}
}

// The first attempt is short, because a request that meets no leader is never answered; later ones leave more time.
func TestLaterAttemptsTakeLonger(t *testing.T) {
	t.Parallel()
	var limits []time.Duration
	a := leaderWait{wait: time.Hour, refused: func() bool { return false }, first: time.Minute, try: 150 * time.Second, onWait: func(error, time.Duration) {}}
	err := a.run(t.Context(), func(ctx context.Context) error {
		until, ok := ctx.Deadline()
		if !ok {
			t.Error("an attempt has no limit")
		}
		if limits = append(limits, time.Until(until).Round(time.Minute/2)); len(limits) < 4 {
			return context.DeadlineExceeded
		}
		return nil
	})
	if want := []time.Duration{time.Minute, 2 * time.Minute, 150 * time.Second, 150 * time.Second}; err != nil || !slices.Equal(limits, want) {
		t.Errorf("%v, %v", limits, err)
	}
}
