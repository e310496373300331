package sim

import (
	"errors"

	"github.com/troupe-run/troupe/internal/activation"
)

// read brings a shell its next entries: its log, a part of it, or an entry of the tail.
func (s *sim) read(sh *shell) {
	a := sh.actor
	switch {
	case sh.claim != nil:
		claim := sh.claim.Claim
		sh.claim = nil
		f := activation.LogRead{Claim: claim, Differences: s.otherwise(a)}
		if !s.quiet && s.on(Failing) && s.percent(8) {
			f.Err = errNoLeader
		} else {
			f.Log = a.between(0, claim.Place)
		}
		s.learn(sh, f)
	case sh.part != nil:
		part := *sh.part
		sh.part = nil
		entries := a.between(part.After, part.Through)
		entries = entries[:min(len(entries), partMax)]
		for _, m := range entries {
			s.learn(sh, activation.EntryRead{Message: m})
		}
		s.learn(sh, activation.TailRead{Through: part.Through, Entries: len(entries)})
	case !s.quiet && s.percent(detachOdds):
		s.note("%s is detached from the tail", sh.start)
		sh.detached = true
		s.learn(sh, activation.Detached{Through: a.head()})
	default:
		m := a.log[sh.tail]
		sh.tail++
		s.learn(sh, activation.EntryArrived{Message: m})
	}
}

// errNoLeader means that a log has no leader for a while.
var errNoLeader = errors.New("no leader")

// Bounds of reading.
const (
	partMax    = 4 // entries of one part
	detachOdds = 1 // in percent: how often a shell is too slow for the tail
)

// mayRead reports whether there are entries that the shell has not read.
func (sh *shell) mayRead() bool {
	return sh.claim != nil || sh.part != nil || !sh.detached && sh.tail < len(sh.actor.log)
}
