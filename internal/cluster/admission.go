package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/control"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

const (
	// MaxLiveRuns is how many runs may have an activation on a node at once. At the
	// measured memory of a live run (docs/cost.md) they stay within 1 GiB.
	MaxLiveRuns = 2000
	// MaxQueuedRuns is how many more runs may wait in their logs to become live.
	MaxQueuedRuns = 10_000
	// checkPause is how often runs that wait for the user are asked to passivate while other
	// runs are queued.
	checkPause = time.Second
	// startTimeout is how long an admitted run counts as live without an activation.
	startTimeout = 10 * time.Second
)

// runAdmission bounds the runs that are live on this node. A run whose log holds nothing but
// requests of clients is queued when too many runs are live, in the order of the broker's
// stamps, and begun when another one ends, or passivates because it waits. Only a run that
// has not begun is ever queued: a run that is answered, resumed or taken over, and a
// child, never waits for room, so that no run waits for one that waits.
//
// A queued run is never lost: it leaves the queue only for an activation, and if the
// activation does not come within startTimeout, the run is queued again. A second wake of
// a run that has an activation does nothing.
type runAdmission struct {
	liveMax, queuedMax int
	wakeSupervisor     func(mailbox.Address)      // wakes a run's supervisor
	passivateWaiting   func()                     // asks waiting runs to passivate
	isHeld             func(mailbox.Address) bool // this node may act on the log now
	ownedFilter        func() func(mailbox.Address) bool
	reportQueued       func(queuedRun, int) // of a run that was queued, and its position

	mu         sync.Mutex
	live       map[string]activationCount // activations here, by run
	starting   map[string]startingRun     // admitted, and no activation yet
	queue      []queuedRun                // the oldest first
	queued     map[string]bool
	counting   int // passes that still count the begun runs; the queue does not move meanwhile
	checkTimer *time.Timer
	closed     bool
}

type queuedRun struct {
	at     mailbox.Address
	opened mailbox.Stamp // of the first entry of its log
}

// compareOrder orders runs as they were opened, also those of one millisecond.
func (q queuedRun) compareOrder(o queuedRun) int {
	return cmp.Or(q.opened.Compare(o.opened), cmp.Compare(q.at, o.at))
}

// activationCount counts the activations of a run's actors.
type activationCount struct{ actors, supervisors int }

// startingRun is an admitted run. If the run had not begun and its supervisor gets no
// activation, it is queued again.
type startingRun struct {
	queuedRun // no address: the run had begun
	since     time.Time
}

// admitEntry decides whether an entry or a wake may activate an actor of a run.
func (a *runAdmission) admitEntry(m mailbox.Message) bool {
	kind, from := activation.InspectEntry(m.Data)
	a.mu.Lock()
	defer a.mu.Unlock()
	run, isSuper := m.To.Run(), m.To.Agent() == mailbox.Super
	switch q := (queuedRun{m.To, m.Stamp()}); {
	case from == activation.OriginActor:
		a.removeQueued(run) // it has begun
		return true
	case a.queued[run] && isSuper && kind == agent.Canceled{}.Kind():
		a.removeQueued(run)
		a.markStarting(q) // it only ends
		return true
	case a.queued[run]:
		return false
	case !isSuper || kind != supervisor.Opened{}.Kind():
		return true
	case len(a.queue) == 0 && a.hasRoom():
		a.markStarting(q)
		return true
	default:
		a.reportQueued(q, a.insertQueued(q)+1)
		return false
	}
}

// insertQueued queues a run, and returns how many runs are ahead of it. The caller holds mu.
func (a *runAdmission) insertQueued(q queuedRun) int {
	i, _ := slices.BinarySearchFunc(a.queue, q, queuedRun.compareOrder)
	a.queue = slices.Insert(a.queue, i, q)
	a.queued[q.at.Run()] = true
	a.scheduleCheck()
	return i
}

// markStarting records that a run that had not begun was admitted. The caller holds mu.
func (a *runAdmission) markStarting(q queuedRun) {
	a.starting[q.at.Run()] = startingRun{q, time.Now()}
	a.scheduleCheck()
}

// removeQueued removes a run from the queue. The caller holds mu.
func (a *runAdmission) removeQueued(run string) {
	if a.queued[run] {
		delete(a.queued, run)
		a.queue = slices.DeleteFunc(a.queue, func(q queuedRun) bool { return q.at.Run() == run })
	}
}

// beginQueued begins queued runs for which there is room.
func (a *runAdmission) beginQueued() {
	a.mu.Lock()
	next := a.takeRunnable()
	a.mu.Unlock()
	for _, at := range next {
		a.wakeSupervisor(at)
	}
}

// hasRoom reports whether one more run may be live. The caller holds mu.
func (a *runAdmission) hasRoom() bool { return len(a.live)+len(a.starting) < a.liveMax }

// expireStarting ends the wait for activations that did not come, because the node could not act on
// the log just then. A run that has not begun is queued again. The caller holds mu.
func (a *runAdmission) expireStarting() {
	for run, s := range a.starting {
		if time.Since(s.since) <= startTimeout {
			continue
		}
		delete(a.starting, run)
		if s.at != "" && !a.queued[run] {
			a.insertQueued(s.queuedRun)
		}
	}
}

// dropUnowned removes queued runs in shards that this node has lost: the next owner of a shard
// queues the runs that it finds there. The caller holds mu.
func (a *runAdmission) dropUnowned() {
	owned := a.ownedFilter()
	a.queue = slices.DeleteFunc(a.queue, func(q queuedRun) bool {
		if !owned(q.at) {
			delete(a.queued, q.at.Run())
		}
		return !a.queued[q.at.Run()]
	})
}

// countActivation counts activations.
func (a *runAdmission) countActivation(at mailbox.Address, change int) {
	a.mu.Lock()
	run, isSuper := at.Run(), at.Agent() == mailbox.Super
	p := a.live[run]
	p.actors += change
	if isSuper {
		p.supervisors += change
	}
	a.live[run] = p
	if p.actors <= 0 {
		delete(a.live, run)
	}
	if s, ok := a.starting[run]; ok && change > 0 && (isSuper || s.at == "") {
		delete(a.starting, run)
	}
	if isSuper && change > 0 {
		a.removeQueued(run)
	}
	a.mu.Unlock()
	a.beginQueued()
}

// takeRunnable removes from the queue the runs that may begin now. A run whose lease is in doubt
// keeps its place. The caller holds mu.
func (a *runAdmission) takeRunnable() (next []mailbox.Address) {
	for i := 0; a.counting == 0 && i < len(a.queue) && a.hasRoom(); {
		q := a.queue[i]
		if !a.isHeld(q.at) {
			i++
			continue
		}
		a.queue = slices.Delete(a.queue, i, i+1)
		delete(a.queued, q.at.Run())
		a.markStarting(q)
		next = append(next, q.at)
	}
	return next
}

// scheduleCheck checks again after a pause, as long as runs are queued or starting, and asks
// waiting runs to passivate. The caller holds mu.
func (a *runAdmission) scheduleCheck() {
	if a.checkTimer != nil || a.closed {
		return
	}
	a.checkTimer = time.AfterFunc(checkPause, func() {
		a.mu.Lock()
		a.checkTimer = nil
		a.expireStarting()
		a.dropUnowned()
		waits := len(a.queue) > 0
		if waits || len(a.starting) > 0 {
			a.scheduleCheck()
		}
		a.mu.Unlock()
		a.beginQueued()
		if waits {
			a.passivateWaiting()
		}
	})
}

func (a *runAdmission) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	if a.checkTimer != nil {
		a.checkTimer.Stop()
	}
}

// queueView returns the queue as the control service shows it.
func (a *runAdmission) queueView() control.Queue {
	return control.Queue{Place: a.queuePosition, Places: a.queuePositions, Full: a.checkFull}
}

// queuePosition is the place of one run, from 1; 0: it is not queued.
func (a *runAdmission) queuePosition(run string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.queued[run] {
		return 0
	}
	return 1 + slices.IndexFunc(a.queue, func(q queuedRun) bool { return q.at.Run() == run })
}

// queuePositions are the places of the queued runs, from 1.
func (a *runAdmission) queuePositions() map[string]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	places := make(map[string]int, len(a.queue))
	for i, q := range a.queue {
		places[q.at.Run()] = i + 1
	}
	return places
}

// checkFull refuses a new run when the queue is full.
func (a *runAdmission) checkFull() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.queue) < a.queuedMax {
		return nil
	}
	return &client.Error{Code: client.CodeLimit, Text: fmt.Sprintf("the node has as many runs as it may: %d live, %d queued", len(a.live), len(a.queue)),
		Hint: "ask again when some have ended; --max-live-runs and --max-queued-runs of troupe up and troupe-node set the limits"}
}

// countRuns returns how many runs are live, and how many are queued.
func (a *runAdmission) countRuns() (live, queued int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.live) + len(a.starting), len(a.queue)
}

var errRunLimit = errors.New("cluster: a limit on runs must not be negative")

// CheckRunLimits refuses limits that would let no run begin.
func CheckRunLimits(live, queued int) error {
	if live < 0 || queued < 0 {
		return fmt.Errorf("%w: --max-live-runs %d, --max-queued-runs %d; 0 is the default", errRunLimit, live, queued)
	}
	return nil
}

// limitRuns sets the functions that bound the live runs.
func (o *Owner) limitRuns(cfg *actors.Config) {
	a := &o.admission
	a.liveMax, a.queuedMax = cmp.Or(o.cfg.MaxLiveRuns, MaxLiveRuns), cmp.Or(o.cfg.MaxQueuedRuns, MaxQueuedRuns)
	a.live, a.starting, a.queued = map[string]activationCount{}, map[string]startingRun{}, map[string]bool{}
	a.wakeSupervisor = func(at mailbox.Address) { o.cfg.Node().Wake(at) }
	a.passivateWaiting = func() { o.cfg.Node().PassivateEarly() }
	a.reportQueued = func(q queuedRun, position int) {
		o.cfg.Publish(control.RunQueuedEvent(q.at, o.cfg.Name, event.RunQueued{Position: position, MaxLive: a.liveMax}, time.Now()))
	}
	a.ownedFilter = o.ownedFilter
	holds, alive := cfg.Holds, cfg.Alive
	a.isHeld = func(at mailbox.Address) bool {
		if holds == nil {
			return true
		}
		_, ok := holds(at)
		return ok
	}
	cfg.Admit = a.admitEntry
	cfg.Alive = func(at mailbox.Address, change int) {
		alive(at, change)
		a.countActivation(at, change)
	}
}
