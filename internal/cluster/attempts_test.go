package cluster

import (
	"context"
	"errors"
	"testing"
	"time"
)

// A read that never comes to an end, of a stream without a leader, is given up and
// tried again with more time, up to a bound; after one that came to its end the
// next has the first time again.
func TestAReadWithoutAnEndIsGivenUpAndTriedAgainLonger(t *testing.T) {
	t.Parallel()
	p := growingTimeout{first: time.Millisecond, most: 5 * time.Millisecond}
	var had []time.Duration
	hangs := func(ctx context.Context) error {
		end, ok := ctx.Deadline()
		if !ok {
			t.Fatal("it has no end")
		}
		had = append(had, max(p.first, p.now))
		if left := time.Until(end); left > had[len(had)-1] {
			t.Errorf("it has %v, not %v", left, had[len(had)-1])
		}
		<-ctx.Done()
		return context.Cause(ctx)
	}
	for _, want := range []time.Duration{1, 2, 4, 5, 5} {
		if err := p.runWithin(t.Context(), hangs); !errors.Is(err, context.DeadlineExceeded) || had[len(had)-1] != want*time.Millisecond {
			t.Errorf("%v after %v, want %d ms", err, had[len(had)-1], want)
		}
	}
	refused := errors.New("refused")
	if err := p.runWithin(t.Context(), func(context.Context) error { return refused }); !errors.Is(err, refused) || p.now != p.most {
		t.Errorf("%v: %+v", err, p)
	}
	over, end := context.WithCancel(t.Context())
	end()
	if err := p.runWithin(over, hangs); !errors.Is(err, context.Canceled) || p.now != p.most {
		t.Errorf("the node goes: %v, %+v", err, p)
	}
	if err := p.runWithin(t.Context(), func(context.Context) error { return nil }); err != nil || p.now != 0 {
		t.Errorf("%v: %+v", err, p)
	}
}
