package shard

import (
	"maps"
	"slices"
	"sync"
)

// keeperState is what a node knows of the cluster and what it holds. Its lock guards all
// fields; the methods of keeperState and of its parts expect the caller to hold the lock.
type keeperState struct {
	sync.RWMutex
	self           Node // this node's own record, as it is published
	unpublished    bool // self has changed, and other nodes are to learn it at once
	leaves         bool // by Keeper.Leave
	leaveRequested bool // to leave, by a key that Keeper.Ask wrote
	session        leaseSession
	holdings       holdings
	jobs           map[string]heldLease // by name; see Keeper.HoldJob
	view           clusterView
}

func newState(self Node) *keeperState {
	return &keeperState{self: self, session: leaseSession{clock: readClock}, holdings: newHoldings(), jobs: map[string]heldLease{}, view: newView()}
}

// isLeaving reports whether this node drains.
func (s *keeperState) isLeaving() bool { return s.leaves || s.leaveRequested }

// holdsSlot reports whether this node may act on a shard, and under which epoch. The
// clock is read under the lock: see leaseSession.extend.
func (s *keeperState) holdsSlot(slot int) (epoch uint64, ok bool) {
	h, ok := s.holdings.held[slot]
	_, doubted := s.holdings.doubt[slot]
	return h.epoch, ok && !doubted && h.session == s.session.id && s.session.isLive()
}

// holdings are the shards of this node, by slot. Only the goroutine of Keeper.run
// changes held; Close does so after that goroutine has ended.
type holdings struct {
	held     map[int]heldLease
	doubt    map[int]struct{}      // held, but the watch or the leader showed something else
	outgoing map[int]outgoingShard // held, and on the way to another node
	former   map[int]struct{}      // lost, because the lease ended by itself
	owed     map[int]struct{}      // released, but the lease may still be in the bucket
}

// heldLease is a lease of this node.
type heldLease struct {
	epoch   uint64
	session string
}

// outgoingShard is a shard that is brought to rest. It is about one epoch, because the
// shard may be lost and taken again meanwhile.
type outgoingShard struct {
	epoch uint64
	quiet bool
}

func newHoldings() holdings {
	return holdings{held: map[int]heldLease{}, doubt: map[int]struct{}{}, outgoing: map[int]outgoingShard{}, former: map[int]struct{}{}, owed: map[int]struct{}{}}
}

func (h *holdings) heldSlots() []int { return slices.Sorted(maps.Keys(h.held)) }

// add records that a shard was taken.
func (h *holdings) add(slot int, of heldLease) {
	h.held[slot] = of
	delete(h.former, slot)
	delete(h.doubt, slot)
}

// drop stops holding a shard here. The lease itself stays until it is released, or
// until the session ends.
func (h *holdings) drop(slot int) (epoch uint64, ok bool) {
	of, ok := h.held[slot]
	delete(h.held, slot)
	delete(h.outgoing, slot)
	return of.epoch, ok
}

// beginHandOff marks a shard that is to be given away; ok is false if it is not held
// or is marked already.
func (h *holdings) beginHandOff(slot int) (epoch uint64, ok bool) {
	_, begun := h.outgoing[slot]
	of, ok := h.held[slot]
	if begun || !ok {
		return 0, false
	}
	h.outgoing[slot] = outgoingShard{epoch: of.epoch}
	return of.epoch, true
}

// setQuiet marks a shard that was brought to rest under an epoch.
func (h *holdings) setQuiet(slot int, epoch uint64) {
	if h.outgoing[slot].epoch == epoch {
		h.outgoing[slot] = outgoingShard{epoch, true}
	}
}

// takeQuiet removes and returns the shards that can be given away now.
func (h *holdings) takeQuiet() []int {
	var list []int
	for s, g := range h.outgoing {
		if g.quiet {
			list = append(list, s)
			delete(h.outgoing, s)
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
