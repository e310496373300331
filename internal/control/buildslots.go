package control

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control/bounds"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/supervisor"
)

// buildsPerProcessor is how many runs a node builds at once, for each processor.
const buildsPerProcessor = 2

// overdueBuildsMax is how many builds of one owner, or of all operators, may take longer than bounds.BuildTimeout before
// the node begins no more of theirs.
const overdueBuildsMax = 8

// buildSlots are the slots for runs that are built at once. A build reads files and asks servers that a request names, which
// may be slow or never answer, and nothing stops it there. So an owner has at most half of the slots, the owner
// with the fewest builds has the next turn, and a build that takes too long gives its slot away while it goes on. Operators may
// have all slots: a node without owners has no other requests.
type buildSlots struct {
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

func newBuildSlots(most int) *buildSlots {
	return &buildSlots{most: most, share: max(1, most/2), owners: map[string]*ownerBuilds{}}
}

// mayBuild reports whether an owner may begin a build, as far as its own builds are concerned.
func (s *buildSlots) mayBuild(owner string, o *ownerBuilds) bool {
	return owner == "" || o.building < s.share
}

// take waits for a slot.
func (s *buildSlots) take(ctx context.Context, run, owner string) (*buildSlot, error) {
	s.mu.Lock()
	o := s.owners[owner]
	if o == nil {
		o = &ownerBuilds{turn: s.turn}
		s.owners[owner] = o
	}
	if o.overdue >= overdueBuildsMax {
		s.mu.Unlock()
		return nil, &client.Error{Code: client.CodeUnavailable, Text: fmt.Sprintf("run %.80s was not built: %d runs before it take longer than %v each, and this node builds no more until one of them ends", run, overdueBuildsMax, bounds.BuildTimeout),
			Hint: "a directory or a server of tools that those requests name does not answer; ask again once it does, or have the node started again"}
	}
	turn := make(chan struct{})
	o.waiting = append(o.waiting, turn)
	s.beginNext()
	s.mu.Unlock()
	slot := &buildSlot{slots: s, owner: owner}
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
		slot.leave()
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, &client.Error{Code: client.CodeLimit, Text: fmt.Sprintf("run %.80s was not built: the node builds other runs, and its turn did not come", run), Hint: "ask again in a moment", Retry: refuse.RetryAfter}
	}
	return nil, fmt.Errorf("control: run %s was not built: %w", run, context.Cause(ctx))
}

// beginNext gives the free slots to those whose turn it is. The caller holds mu.
func (s *buildSlots) beginNext() {
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
func (s *buildSlots) forget(owner string) {
	if o := s.owners[owner]; o.building == 0 && o.overdue == 0 && len(o.waiting) == 0 {
		delete(s.owners, owner)
	}
}

// buildSlot is the slot of one build.
type buildSlot struct {
	slots     *buildSlots
	owner     string
	isOverdue bool
	hasLeft   bool
}

// giveAway gives the slot to the next build, because this one takes too long.
func (b *buildSlot) giveAway() {
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

// leave says that the build has ended.
func (b *buildSlot) leave() {
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

// builtRun is the result of a build.
type builtRun struct {
	opened   supervisor.Opened
	accepted client.RunAccepted
	err      error
	panicked error // to panic with in the goroutine of the request, which recovers
}

// build builds a run once one of the slots for it is free: a build reads many files, and holds them in memory. It returns
// when the time of the request is over, or bounds.BuildTimeout, whatever the build still waits for.
func (c *opener) build(ctx context.Context, r client.RunRequest) (supervisor.Opened, client.RunAccepted, error) {
	ctx, cancel := context.WithTimeout(ctx, bounds.BuildTimeout)
	defer cancel()
	slot, err := c.building.take(ctx, r.RunID, r.Owner)
	if err != nil {
		return supervisor.Opened{}, client.RunAccepted{}, err
	}
	done := make(chan builtRun, 1)
	late := time.AfterFunc(bounds.BuildTimeout, func() {
		slot.giveAway()
		c.cfg.logger().Warn("the build of a run takes long, and others no longer wait for it", "run", r.RunID, "owner", r.Owner, "dir", r.Dir, "after", bounds.BuildTimeout)
	})
	go func() {
		b := c.buildHere(r)
		late.Stop()
		slot.leave()
		done <- b
	}()
	select {
	case b := <-done:
		if b.panicked != nil {
			panic(b.panicked)
		}
		return b.opened, b.accepted, b.err
	case <-ctx.Done():
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return supervisor.Opened{}, client.RunAccepted{}, &client.Error{Code: client.CodeUnavailable, Text: fmt.Sprintf("run %.80s was not built in time: the node still reads what its request names", r.RunID),
			Hint: "a directory or a server of tools that the request names is slow or does not answer; ask again, or leave it out"}
	}
	return supervisor.Opened{}, client.RunAccepted{}, fmt.Errorf("control: run %s was not built: %w", r.RunID, context.Cause(ctx))
}

// buildHere builds a run in this goroutine.
func (c *opener) buildHere(r client.RunRequest) (b builtRun) {
	defer func() {
		if p := recover(); p != nil {
			b.panicked = fmt.Errorf("%v\n%s", p, debug.Stack())
			c.cfg.logger().Error("the build of a run panicked", "run", r.RunID, "panic", p)
		}
	}()
	b.opened, b.accepted, b.err = c.cfg.Build(r)
	return b
}
