package shard

import "time"

// clockReading is a moment by two clocks. The monotonic clock of Linux stands still while the
// machine sleeps, and the wall clock may be set back.
type clockReading struct {
	mono time.Duration
	wall time.Time
}

var began = time.Now()

// readClock reads both clocks.
func readClock() clockReading {
	now := time.Now()
	return clockReading{now.Sub(began), now.Round(0)}
}

func (i clockReading) add(d time.Duration) clockReading {
	return clockReading{i.mono + d, i.wall.Add(d)}
}

// isPast reports whether either clock has reached an end.
func (i clockReading) isPast(end clockReading) bool {
	return i.mono >= end.mono || !i.wall.Before(end.wall)
}

// unknownRenewal is a renewal whose outcome is unknown.
type unknownRenewal struct {
	beat uint64
	sent clockReading
}

// leaseSession is the lease session of this node: its leases name it, and they are valid
// while it lasts.
type leaseSession struct {
	clock    func() clockReading
	id       string         // "" after the session has ended
	until    clockReading   // the session ends then, unless it is renewed
	lapsed   bool           // it was renewed after until, and no other node took its shards
	revision uint64         // of this node's own key
	unknown  unknownRenewal // the last renewal whose outcome is unknown
	// calm is the time until which the node only takes shards that it had before and
	// gives none to better nodes: this node was not heard, so it does not know whether
	// the other nodes are dead or were not heard either.
	calm time.Time
}

// isLive reports whether the session lasts. From its end on other nodes may have taken
// the shards; the end is counted from before the renewal was sent.
func (s *leaseSession) isLive() bool { return !s.clock().isPast(s.until) }

// begin starts a session whose key was written at a revision.
func (s *leaseSession) begin(id string, revision uint64, until clockReading) {
	s.id, s.revision, s.until, s.unknown = id, revision, until, unknownRenewal{}
}

// extend records a renewal that was written at a revision.
func (s *leaseSession) extend(revision uint64, until clockReading) {
	s.revision, s.unknown = revision, unknownRenewal{}
	if until.mono > s.until.mono {
		// A caller that was told that the leases are over was told before this.
		s.lapsed = s.lapsed || !s.isLive()
		s.until = until
	}
}

// end ends the session: all that is held belongs to a session that is over.
func (s *leaseSession) end(calm time.Time) { s.id, s.calm = "", calm }

// isCalm reports whether the node takes only its former shards and gives none away.
func (s *leaseSession) isCalm(now time.Time) bool { return now.Before(s.calm) || !s.isLive() }
