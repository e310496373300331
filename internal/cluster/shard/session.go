package shard

import "time"

// instant is a moment by two clocks. The monotonic clock of Linux stands still while the
// machine sleeps, and the wall clock may be set back.
type instant struct {
	mono time.Duration
	wall time.Time
}

var began = time.Now()

// readClock reads both clocks.
func readClock() instant {
	now := time.Now()
	return instant{now.Sub(began), now.Round(0)}
}

func (i instant) add(d time.Duration) instant { return instant{i.mono + d, i.wall.Add(d)} }

// isPast reports whether either clock has reached an end.
func (i instant) isPast(end instant) bool { return i.mono >= end.mono || !i.wall.Before(end.wall) }

// attempt is a renewal whose outcome is unknown.
type attempt struct {
	beat uint64
	sent instant
}

// session is the lease session of this node: its leases name it, and they are valid
// while it lasts.
type session struct {
	clock    func() instant
	id       string  // "" after the session has ended
	until    instant // the session ends then, unless it is renewed
	lapsed   bool    // it was renewed after until, and no other node took its shards
	revision uint64  // of this node's own key
	unknown  attempt // the last renewal whose outcome is unknown
	// calm is the time until which the node only takes shards that it had before and
	// gives none to better nodes: this node was not heard, so it does not know whether
	// the other nodes are dead or were not heard either.
	calm time.Time
}

// isLive reports whether the session lasts. From its end on other nodes may have taken
// the shards; the end is counted from before the renewal was sent.
func (s *session) isLive() bool { return !s.clock().isPast(s.until) }

// begin starts a session whose key was written at a revision.
func (s *session) begin(id string, revision uint64, until instant) {
	s.id, s.revision, s.until, s.unknown = id, revision, until, attempt{}
}

// extend records a renewal that was written at a revision.
func (s *session) extend(revision uint64, until instant) {
	s.revision, s.unknown = revision, attempt{}
	if until.mono > s.until.mono {
		// A caller that was told that the leases are over was told before this.
		s.lapsed = s.lapsed || !s.isLive()
		s.until = until
	}
}

// end ends the session: all that is held belongs to a session that is over.
func (s *session) end(calm time.Time) { s.id, s.calm = "", calm }

// isCalm reports whether the node takes only its former shards and gives none away.
func (s *session) isCalm(now time.Time) bool { return now.Before(s.calm) || !s.isLive() }
