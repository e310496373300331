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
	// pressPause is how often runs that wait for the user are asked to passivate while other
	// runs are queued.
	pressPause = time.Second
	// startPatience is how long an admitted run counts as live without an activation.
	startPatience = 10 * time.Second
)

// admission bounds the runs that are live on this node. A run whose log holds nothing but
// requests of clients is queued when too many runs are live, in the order of the broker's
// stamps, and begun when another one ends, or passivates because it waits. Only a run that
// has not begun is ever queued: a run that is answered, resumed or taken over, and a
// child, never waits for room, so that no run waits for one that waits.
//
// A queued run is never lost: it leaves the queue only for an activation, and if the
// activation does not come within startPatience, the run is queued again. A second wake of
// a run that has an activation does nothing.
type admission struct {
	most, mostQueued int
	begin            func(mailbox.Address)      // wakes a run's supervisor
	press            func()                     // asks waiting runs to passivate
	holds            func(mailbox.Address) bool // this node may act on the log now
	owned            func() func(mailbox.Address) bool
	tell             func(queuedRun, int) // of a run that was queued, and its position

	mu       sync.Mutex
	live     map[string]presence // activations here, by run
	starting map[string]starting // admitted, and no activation yet
	queue    []queuedRun         // the oldest first
	queued   map[string]bool
	counting int // passes that still count the begun runs; the queue does not move meanwhile
	pressing *time.Timer
	closed   bool
}

type queuedRun struct {
	at    mailbox.Address
	stamp int64
}

func (q queuedRun) before(o queuedRun) int {
	return cmp.Or(cmp.Compare(q.stamp, o.stamp), cmp.Compare(q.at, o.at))
}

// presence counts the activations of a run's actors.
type presence struct{ actors, supervisors int }

// starting is an admitted run. If the run had not begun and its supervisor gets no
// activation, it is queued again.
type starting struct {
	queuedRun // no address: the run had begun
	since     time.Time
}

// admit decides whether an entry or a wake may activate an actor of a run.
func (a *admission) admit(m mailbox.Message) bool {
	kind, from := activation.InspectEntry(m.Data)
	a.mu.Lock()
	defer a.mu.Unlock()
	run, isSuper := m.To.Run(), m.To.Agent() == mailbox.Super
	switch q := (queuedRun{m.To, m.At}); {
	case from == activation.OriginActor:
		a.dequeue(run) // it has begun
		return true
	case a.queued[run] && isSuper && kind == agent.Canceled{}.Kind():
		a.dequeue(run)
		a.start(q) // it only ends
		return true
	case a.queued[run]:
		return false
	case !isSuper || kind != supervisor.Opened{}.Kind():
		return true
	case len(a.queue) == 0 && a.free():
		a.start(q)
		return true
	default:
		a.tell(q, a.put(q)+1)
		return false
	}
}

// put queues a run, and returns how many runs are ahead of it. The caller holds mu.
func (a *admission) put(q queuedRun) int {
	i, _ := slices.BinarySearchFunc(a.queue, q, queuedRun.before)
	a.queue = slices.Insert(a.queue, i, q)
	a.queued[q.at.Run()] = true
	a.pressLater()
	return i
}

// start records that a run that had not begun was admitted. The caller holds mu.
func (a *admission) start(q queuedRun) {
	a.starting[q.at.Run()] = starting{q, time.Now()}
	a.pressLater()
}

// dequeue removes a run from the queue. The caller holds mu.
func (a *admission) dequeue(run string) {
	if a.queued[run] {
		delete(a.queued, run)
		a.queue = slices.DeleteFunc(a.queue, func(q queuedRun) bool { return q.at.Run() == run })
	}
}

// goOn begins queued runs for which there is room.
func (a *admission) goOn() {
	a.mu.Lock()
	next := a.next()
	a.mu.Unlock()
	for _, at := range next {
		a.begin(at)
	}
}

// free reports whether one more run may be live. The caller holds mu.
func (a *admission) free() bool { return len(a.live)+len(a.starting) < a.most }

// expire ends the wait for activations that did not come, because the node could not act on
// the log just then. A run that has not begun is queued again. The caller holds mu.
func (a *admission) expire() {
	for run, s := range a.starting {
		if time.Since(s.since) <= startPatience {
			continue
		}
		delete(a.starting, run)
		if s.at != "" && !a.queued[run] {
			a.put(s.queuedRun)
		}
	}
}

// disown removes queued runs in shards that this node has lost: the next owner of a shard
// queues the runs that it finds there. The caller holds mu.
func (a *admission) disown() {
	owned := a.owned()
	a.queue = slices.DeleteFunc(a.queue, func(q queuedRun) bool {
		if !owned(q.at) {
			delete(a.queued, q.at.Run())
		}
		return !a.queued[q.at.Run()]
	})
}

// alive counts activations.
func (a *admission) alive(at mailbox.Address, change int) {
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
		a.dequeue(run)
	}
	a.mu.Unlock()
	a.goOn()
}

// next removes from the queue the runs that may begin now. A run whose lease is in doubt
// keeps its place. The caller holds mu.
func (a *admission) next() (next []mailbox.Address) {
	for i := 0; a.counting == 0 && i < len(a.queue) && a.free(); {
		q := a.queue[i]
		if !a.holds(q.at) {
			i++
			continue
		}
		a.queue = slices.Delete(a.queue, i, i+1)
		delete(a.queued, q.at.Run())
		a.start(q)
		next = append(next, q.at)
	}
	return next
}

// pressLater checks again after a pause, as long as runs are queued or starting, and asks
// waiting runs to passivate. The caller holds mu.
func (a *admission) pressLater() {
	if a.pressing != nil || a.closed {
		return
	}
	a.pressing = time.AfterFunc(pressPause, func() {
		a.mu.Lock()
		a.pressing = nil
		a.expire()
		a.disown()
		waits := len(a.queue) > 0
		if waits || len(a.starting) > 0 {
			a.pressLater()
		}
		a.mu.Unlock()
		a.goOn()
		if waits {
			a.press()
		}
	})
}

func (a *admission) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	if a.pressing != nil {
		a.pressing.Stop()
	}
}

// queueView returns the queue as the control service shows it.
func (a *admission) queueView() control.Queue {
	return control.Queue{Place: a.position, Places: a.positions, Full: a.full}
}

// position is the place of one run, from 1; 0: it is not queued.
func (a *admission) position(run string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.queued[run] {
		return 0
	}
	return 1 + slices.IndexFunc(a.queue, func(q queuedRun) bool { return q.at.Run() == run })
}

// positions are the places of the queued runs, from 1.
func (a *admission) positions() map[string]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	places := make(map[string]int, len(a.queue))
	for i, q := range a.queue {
		places[q.at.Run()] = i + 1
	}
	return places
}

// full refuses a new run when the queue is full.
func (a *admission) full() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.queue) < a.mostQueued {
		return nil
	}
	return &client.Error{Code: client.CodeLimit, Text: fmt.Sprintf("the node has as many runs as it may: %d live, %d queued", len(a.live), len(a.queue)),
		Hint: "ask again when some have ended; --max-live-runs and --max-queued-runs of troupe up and troupe-node set the limits"}
}

// count returns how many runs are live, and how many are queued.
func (a *admission) count() (live, queued int) {
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
	a.most, a.mostQueued = cmp.Or(o.cfg.MaxLiveRuns, MaxLiveRuns), cmp.Or(o.cfg.MaxQueuedRuns, MaxQueuedRuns)
	a.live, a.starting, a.queued = map[string]presence{}, map[string]starting{}, map[string]bool{}
	a.begin = func(at mailbox.Address) { o.cfg.Node().Wake(at) }
	a.press = func() { o.cfg.Node().PassivateEarly() }
	a.tell = func(q queuedRun, position int) {
		o.cfg.Publish(control.QueuedRun(q.at, o.cfg.Name, event.RunQueued{Position: position, MaxLive: a.most}, time.Now()))
	}
	a.owned = o.owned
	holds, alive := cfg.Holds, cfg.Alive
	a.holds = func(at mailbox.Address) bool {
		if holds == nil {
			return true
		}
		_, ok := holds(at)
		return ok
	}
	cfg.Admit = a.admit
	cfg.Alive = func(at mailbox.Address, change int) {
		alive(at, change)
		a.alive(at, change)
	}
}
