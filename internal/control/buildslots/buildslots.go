// Package buildslots gives the builds of runs their turns: each owner has a share of them, and a build that takes too long
// gives its turn away while it goes on.
package buildslots

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control/bounds"
	"github.com/troupe-run/troupe/internal/refuse"
)

// OverdueMax is how many builds of one owner, or of all operators, may take longer than bounds.BuildTimeout before
// the node begins no more of theirs.
const OverdueMax = 8

// Slots are the slots for runs that are built at once. A build reads files and asks servers that a request names, which
// may be slow or never answer, and nothing stops it there. So an owner has at most half of the slots, the owner
// with the fewest builds has the next turn, and a build that takes too long gives its slot away while it goes on. Operators may
// have all slots: a node without owners has no other requests.
type Slots struct {
	most, share int
	mu          sync.Mutex
	building    int // in their time
	turn        uint64
	owners      map[string]*ownerBuilds // that build or wait
}

// ownerBuilds are the builds of one owner; those of all operators have the owner "".
type ownerBuilds struct {
	building, overdue int
	turn              uint64          // when it last had a turn
	waiting           []chan struct{} // oldest first; closed when it is its turn
}

// New returns Slots for most builds at once.
func New(most int) *Slots {
	return &Slots{most: most, share: max(1, most/2), owners: map[string]*ownerBuilds{}}
}

// Counts returns how many builds are in their time, and how many are overdue of each owner that builds or waits.
func (s *Slots) Counts() (building int, overdue map[string]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	overdue = map[string]int{}
	for name, o := range s.owners {
		overdue[name] = o.overdue
	}
	return s.building, overdue
}

// mayBuild reports whether an owner may begin a build, as far as its own builds are concerned.
func (s *Slots) mayBuild(owner string, o *ownerBuilds) bool {
	return owner == "" || o.building < s.share
}

// Take waits for a slot.
func (s *Slots) Take(ctx context.Context, run, owner string) (*Slot, error) {
	s.mu.Lock()
	o := s.owners[owner]
	if o == nil {
		o = &ownerBuilds{turn: s.turn}
		s.owners[owner] = o
	}
	if o.overdue >= OverdueMax {
		s.mu.Unlock()
		return nil, &client.Error{Code: client.CodeUnavailable, Text: fmt.Sprintf("run %.80s was not built: %d runs before it take longer than %v each, and this node builds no more until one of them ends", run, OverdueMax, bounds.BuildTimeout),
			Hint: "a directory or a server of tools that those requests name does not answer; ask again once it does, or have the node started again"}
	}
	turn := make(chan struct{})
	o.waiting = append(o.waiting, turn)
	s.beginNext()
	s.mu.Unlock()
	slot := &Slot{slots: s, owner: owner}
	select {
	case <-turn:
		return slot, nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	i := slices.Index(o.waiting, turn)
	if i >= 0 {
		o.waiting = slices.Delete(o.waiting, i, i+1)
		s.forget(owner)
	}
	s.mu.Unlock()
	if i < 0 { // its turn came at the same moment
		slot.Leave()
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, &client.Error{Code: client.CodeLimit, Text: fmt.Sprintf("run %.80s was not built: the node builds other runs, and its turn did not come", run), Hint: "ask again in a moment", Retry: refuse.RetryAfter}
	}
	return nil, fmt.Errorf("control: run %s was not built: %w", run, context.Cause(ctx))
}

// beginNext gives the free slots to those whose turn it is. The caller holds mu.
func (s *Slots) beginNext() {
	for s.building < s.most {
		var next *ownerBuilds
		for name, o := range s.owners {
			isEarlier := func() bool {
				return o.building < next.building || o.building == next.building && o.turn < next.turn
			}
			if len(o.waiting) > 0 && s.mayBuild(name, o) && (next == nil || isEarlier()) {
				next = o
			}
		}
		if next == nil {
			return
		}
		s.turn++
		s.building++
		next.building++
		next.turn = s.turn
		close(next.waiting[0])
		next.waiting = slices.Delete(next.waiting, 0, 1)
	}
}

// forget removes an owner without builds. The caller holds mu.
func (s *Slots) forget(owner string) {
	if o := s.owners[owner]; o.building == 0 && o.overdue == 0 && len(o.waiting) == 0 {
		delete(s.owners, owner)
	}
}

// Slot is the slot of one build.
type Slot struct {
	slots     *Slots
	owner     string
	isOverdue bool
	hasLeft   bool
}

// GiveAway gives the slot to the next build, because this one takes too long.
func (b *Slot) GiveAway() {
	b.slots.mu.Lock()
	defer b.slots.mu.Unlock()
	if b.hasLeft {
		return
	}
	b.isOverdue = true
	o := b.slots.owners[b.owner]
	b.slots.building--
	o.building--
	o.overdue++
	b.slots.beginNext()
}

// Leave says that the build has ended.
func (b *Slot) Leave() {
	b.slots.mu.Lock()
	defer b.slots.mu.Unlock()
	b.hasLeft = true
	o := b.slots.owners[b.owner]
	if b.isOverdue {
		o.overdue--
	} else {
		b.slots.building--
		o.building--
	}
	b.slots.forget(b.owner)
	b.slots.beginNext()
}
