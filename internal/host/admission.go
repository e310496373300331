package host

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/gateway"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

const (
	// MaxLiveRuns is how many runs may have an activation on a node at once. At the
	// measured memory of a live run (docs/cost.md) they stay within 1 GiB.
	MaxLiveRuns = 2000
	// MaxQueuedRuns is how many more may wait for that in their logs.
	MaxQueuedRuns = 10_000
	// pressPause is how often runs that wait for people are asked to leave memory while
	// others are queued.
	pressPause = time.Second
	// startPatience is how long an admitted run counts as live without an activation.
	startPatience = 10 * time.Second
)

// admission bounds the runs that are live on this node. A run whose log holds nothing but
// its request is queued when there are too many, in the order of the broker's stamps, and
// begun when another one ends, or leaves memory because it waits. Only what has not begun
// is ever queued: a run that is answered, resumed or taken over, and a child, never waits
// for a place, so that no run waits for one that waits.
type admission struct {
	most, mostQueued int
	begin            func(mailbox.Address)      // wakes a run's supervisor
	press            func()                     // asks those that wait to leave memory
	holds            func(mailbox.Address) bool // this node acts on the log
	tell             func(queuedRun, int)       // of a run that was queued, and its position

	mu       sync.Mutex
	live     map[string]int       // activations here, by run
	starting map[string]time.Time // admitted, and no activation yet
	queue    []queuedRun          // the oldest first
	queued   map[string]bool
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

// admit decides whether the supervisor of a run may be activated. kind is that of the
// entry that it is to be activated for, "" for none.
func (a *admission) admit(at mailbox.Address, kind string, stamp int64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	run := at.Run()
	switch {
	case a.queued[run] && kind == agent.Canceled{}.Kind():
		a.drop(run)
		a.starting[run] = time.Now() // it only ends
		return true
	case a.queued[run]:
		return false
	case kind != supervisor.Opened{}.Kind():
		return true
	case len(a.queue) == 0 && a.free():
		a.starting[run] = time.Now()
		return true
	}
	q := queuedRun{at, stamp}
	a.tell(q, a.put(q)+1)
	return false
}

// put queues a run, and returns before how many others it comes. mu is held.
func (a *admission) put(q queuedRun) int {
	i, _ := slices.BinarySearchFunc(a.queue, q, queuedRun.before)
	a.queue = slices.Insert(a.queue, i, q)
	a.queued[q.at.Run()] = true
	a.pressLater()
	return i
}

// takeUp decides about an actor of a run that another node, or process, had: it is woken
// at once if its run was begun. Others are queued, and begin in their order once all that
// were begun are counted.
func (a *admission) takeUp(at mailbox.Address, kind string, stamp int64) (wake bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	run := at.Run()
	if at.Agent() == mailbox.Super && kind == (supervisor.Opened{}).Kind() {
		if !a.queued[run] && a.live[run] == 0 && a.starting[run].IsZero() {
			a.put(queuedRun{at, stamp})
		}
		return false
	}
	if a.live[run] == 0 {
		a.starting[run] = time.Now()
	}
	return true
}

// goOn begins those for whom there is a place.
func (a *admission) goOn() {
	a.mu.Lock()
	next := a.next()
	a.mu.Unlock()
	for _, at := range next {
		a.begin(at)
	}
}

// drop takes a run out of the queue. mu is held.
func (a *admission) drop(run string) {
	delete(a.queued, run)
	a.queue = slices.DeleteFunc(a.queue, func(q queuedRun) bool { return q.at.Run() == run })
}

// free reports whether one more run may be live. mu is held.
func (a *admission) free() bool {
	for run, since := range a.starting {
		if time.Since(since) > startPatience {
			delete(a.starting, run)
		}
	}
	return len(a.live)+len(a.starting) < a.most
}

// alive counts activations.
func (a *admission) alive(at mailbox.Address, change int) {
	a.mu.Lock()
	run := at.Run()
	if a.live[run] += change; a.live[run] <= 0 {
		delete(a.live, run)
	}
	if change > 0 {
		delete(a.starting, run)
	}
	a.mu.Unlock()
	a.goOn()
}

// next takes those out of the queue that may begin now. mu is held.
func (a *admission) next() (next []mailbox.Address) {
	for len(a.queue) > 0 && (a.free() || !a.holds(a.queue[0].at)) {
		q := a.queue[0]
		a.queue = a.queue[1:]
		delete(a.queued, q.at.Run())
		if a.holds(q.at) { // else whoever holds it now has queued it
			a.starting[q.at.Run()] = time.Now()
			next = append(next, q.at)
		}
	}
	return next
}

// pressLater asks those that wait to leave memory, as long as runs are queued. mu is held.
func (a *admission) pressLater() {
	if a.pressing != nil || a.closed {
		return
	}
	a.pressing = time.AfterFunc(pressPause, func() {
		a.mu.Lock()
		a.pressing = nil
		waits := len(a.queue) > 0
		if waits {
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

// full refuses a new run when the queue is.
func (a *admission) full() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.queue) < a.mostQueued {
		return nil
	}
	return &client.Error{Code: client.CodeLimit, Text: fmt.Sprintf("%d runs are live on this node, and %d wait for their turn", len(a.live), len(a.queue)),
		Hint: "ask again when some have ended; --max-live-runs and --max-queued-runs of the node set the limits"}
}

// count is how many runs are live, and how many are queued.
func (a *admission) count() (live, queued int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.live) + len(a.starting), len(a.queue)
}

// limitRuns fills in what bounds the live runs.
func (h *Host) limitRuns(cfg *actors.Config) {
	a := &h.runsHere
	a.most, a.mostQueued = cmp.Or(h.cfg.MaxLiveRuns, MaxLiveRuns), cmp.Or(h.cfg.MaxQueuedRuns, MaxQueuedRuns)
	a.live, a.starting, a.queued = map[string]int{}, map[string]time.Time{}, map[string]bool{}
	a.begin = func(at mailbox.Address) { h.node.Wake(at) }
	a.press = func() { h.node.Press() }
	a.tell = func(q queuedRun, position int) {
		h.publish(gateway.QueuedRun(q.at, h.cfg.Name, gateway.RunQueued{Position: position, MaxLive: a.most}, time.Now()))
	}
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
