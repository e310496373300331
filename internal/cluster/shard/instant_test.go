package shard

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/internal/bus"
)

// TestALeaseEndsByEitherClock: while a machine sleeps its monotonic clock stands still,
// and its wall clock may be set back. The clock that is further ahead counts.
//
//behaviour:shows F7
func TestALeaseEndsByEitherClock(t *testing.T) {
	now := readClock()
	s := newState(Node{})
	s.session.begin("s", 1, now.add(20*time.Second))
	s.holdings.add(0, heldLease{epoch: 7, session: "s"})
	for what, c := range map[string]struct {
		mono, wall time.Duration
		holds      bool
	}{
		"both clocks agree, before the end":       {19 * time.Second, 19 * time.Second, true},
		"both clocks agree, at the end":           {20 * time.Second, 20 * time.Second, false},
		"the machine slept for an hour":           {time.Second, time.Hour, false},
		"the wall clock was set back by an hour":  {21 * time.Second, -time.Hour, false},
		"the wall clock was set back a moment":    {10 * time.Second, -time.Second, true},
		"the wall clock was set forward too much": {time.Second, 21 * time.Second, false},
	} {
		s.session.clock = func() clockReading { return clockReading{now.mono + c.mono, now.wall.Add(c.wall)} }
		if _, ok := s.holdsSlot(0); ok != c.holds {
			t.Errorf("%s: holds %v", what, ok)
		}
	}
	s.session.clock, s.session.id = readClock, "another"
	if _, ok := s.holdsSlot(0); ok {
		t.Error("a lease of a session that has ended is held")
	}
}

// TestATTLThatCannotHoldIsRefused: it must be several times what one write takes.
func TestATTLThatCannotHoldIsRefused(t *testing.T) {
	for _, c := range []struct {
		ttl, took time.Duration
		refused   bool
	}{{TTLMin, 10 * time.Millisecond, false}, {TTLMin, 500 * time.Millisecond, false}, {TTLMin, 501 * time.Millisecond, true}, {TTLDefault, 5001 * time.Millisecond, true}} {
		if err := ttlFits(c.ttl, c.took); errors.Is(err, ErrTTL) != c.refused {
			t.Errorf("a TTL of %s where one write takes %s: %v", c.ttl, c.took, err)
		}
	}
	for _, ttl := range []time.Duration{TTLMin - time.Second, TTLMin + time.Millisecond} {
		c := Config{JS: struct{ jetstream.JetStream }{}, Buckets: &bus.Buckets{}, Pools: []Pool{{"default", 1}}, TTL: ttl,
			IsBusy: func(int) bool { return false }, DrainShard: func(int, uint64, func()) {}, ShardsChanged: func(_, _ []int) {}}
		if err := c.checkAndFill(); !errors.Is(err, ErrTTL) {
			t.Errorf("a TTL of %s: %v", ttl, err)
		}
	}
}
