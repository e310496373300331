package local

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/troupe-run/troupe/mailbox"
)

// TestKilledProcessAfterAPowerCut: a power cut takes the newest entries of a lazy store and leaves
// records after the gap. What the next process acknowledges survives its own end, which takes
// nothing that was written.
func TestKilledProcessAfterAPowerCut(t *testing.T) {
	t.Parallel()
	for seed := range uint64(sampled(20)) {
		random := rand.New(rand.NewPCG(seed, 3))
		disk, dir, l := newCrashDisk(), t.TempDir(), newCrashLedger()
		cfg := Config{Dir: dir, disk: disk, segmentBytes: 64 << 10, Lazy: true}
		s := openLocal(t, cfg)
		appendUntil(t, l, s, 100)
		cfg.disk, cfg.Dir = l.cutPower(t, s, disk, random)
		s.abandon(t)

		clear(l.acked)
		s = openLocal(t, cfg)
		l.check(t, s)
		appendUntil(t, l, s, 50)
		s.abandon(t) // the process is killed
		s = openLocal(t, cfg)
		l.check(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func openLocal(t *testing.T, cfg Config) *Store {
	t.Helper()
	s, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// appendUntil appends to ten logs until there are so many more entries.
func appendUntil(t *testing.T, l *ledger, s *Store, entries uint64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	reached, target := make(chan struct{}, 1), s.lastVisible()+entries
	stop, err := s.Tail(ctx, func(m mailbox.Message) {
		if m.Place == target {
			reached <- struct{}{}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	wait := l.write(ctx, s, 10)
	<-reached
	cancel()
	wait()
	stop()
}
