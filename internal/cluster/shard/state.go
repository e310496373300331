package shard

import (
	"maps"
	"slices"
	"sync"
)

// state is what a node knows of the cluster and what it holds. Its lock guards all
// fields; the methods of state and of its parts expect the caller to hold the lock.
type state struct {
	sync.RWMutex
	self        Node // this node's own record, as it is published
	unpublished bool // self has changed, and other nodes are to learn it at once
	leaves      bool // by Keeper.Leave
	asked       bool // to leave, by a key that Keeper.Ask wrote
	session     session
	holdings    holdings
	view        view
}

func newState(self Node) *state {
	return &state{self: self, session: session{clock: readClock}, holdings: newHoldings(), view: newView()}
}

// isLeaving reports whether this node drains.
func (s *state) isLeaving() bool { return s.leaves || s.asked }

// holds reports whether this node may act on a shard, and under which epoch. The
// clock is read under the lock: see session.extend.
func (s *state) holds(slot int) (epoch uint64, ok bool) {
	h, ok := s.holdings.held[slot]
	_, doubted := s.holdings.doubt[slot]
	return h.epoch, ok && !doubted && h.session == s.session.id && s.session.isLive()
}

// holdings are the shards of this node, by slot. Only the goroutine of Keeper.run
// changes held; Close does so after that goroutine has ended.
type holdings struct {
	held   map[int]held
	doubt  map[int]struct{} // held, but the watch or the leader showed something else
	giving map[int]giving   // held, and on the way to another node
	former map[int]struct{} // lost, because the lease ended by itself
	owed   map[int]struct{} // released, but the lease may still be in the bucket
}

// held is a lease of this node.
type held struct {
	epoch   uint64
	session string
}

// giving is a shard that is brought to rest. It is about one epoch, because the
// shard may be lost and taken again meanwhile.
type giving struct {
	epoch uint64
	quiet bool
}

func newHoldings() holdings {
	return holdings{held: map[int]held{}, doubt: map[int]struct{}{}, giving: map[int]giving{}, former: map[int]struct{}{}, owed: map[int]struct{}{}}
}

func (h *holdings) list() []int { return slices.Sorted(maps.Keys(h.held)) }

// add records that a shard was taken.
func (h *holdings) add(slot int, of held) {
	h.held[slot] = of
	delete(h.former, slot)
	delete(h.doubt, slot)
}

// drop stops holding a shard here. The lease itself stays until it is released, or
// until the session ends.
func (h *holdings) drop(slot int) (epoch uint64, ok bool) {
	of, ok := h.held[slot]
	delete(h.held, slot)
	delete(h.giving, slot)
	return of.epoch, ok
}

// beginGiving marks a shard that is to be given away; ok is false if it is not held
// or is marked already.
func (h *holdings) beginGiving(slot int) (epoch uint64, ok bool) {
	_, begun := h.giving[slot]
	of, ok := h.held[slot]
	if begun || !ok {
		return 0, false
	}
	h.giving[slot] = giving{epoch: of.epoch}
	return of.epoch, true
}

// setQuiet marks a shard that was brought to rest under an epoch.
func (h *holdings) setQuiet(slot int, epoch uint64) {
	if h.giving[slot].epoch == epoch {
		h.giving[slot] = giving{epoch, true}
	}
}

// takeQuiet removes and returns the shards that can be given away now.
func (h *holdings) takeQuiet() []int {
	var list []int
	for s, g := range h.giving {
		if g.quiet {
			list = append(list, s)
			delete(h.giving, s)
		}
	}
	slices.Sort(list)
	return list
}

// takeOwed removes and returns the shards whose leases are to be released again.
func (h *holdings) takeOwed() []int {
	var list []int
	for s := range h.owed {
		if _, again := h.held[s]; !again {
			list = append(list, s)
		}
	}
	clear(h.owed)
	return list
}

// ofOtherSessions lists the shards that were taken in a session that has ended.
func (h *holdings) ofOtherSessions(session string) []int {
	var list []int
	for s, of := range h.held {
		if of.session != session {
			list = append(list, s)
		}
	}
	return list
}

// wakeup makes the goroutine of Keeper.run plan again.
type wakeup chan struct{}

func (w wakeup) wake() {
	select {
	case w <- struct{}{}:
	default: // it is awake
	}
}
