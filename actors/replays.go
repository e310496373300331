package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-run/troupe/mailbox"
)

// A shell that starts appends a claim and replays its log, which is in memory meanwhile. A node that takes over a run of
// 10,000 agents has 10,000 logs to replay, so only ReplaysAtOnce shells replay at once. The other actors wait as
// addresses: their entries are in their logs, which the shells will read.

// ReplaysAtOnceDefault is the default of Config.ReplaysAtOnce. It keeps two processors busy with logs in files, and
// hides the latency of a server that takes 20 ms for a claim; the logs of 64 agents take some 10 MB.
const ReplaysAtOnceDefault = 64

const (
	// replayTurn and supervisorTurn are how long a replay counts. A log that cannot be read now is tried again and again,
	// and must not hold up the others; turns are looked at each replayTurn. The log of a supervisor is as long as its run
	// is large.
	replayTurn     = 2 * time.Second
	supervisorTurn = 15 * time.Second
	// besideSupervisors is how many other logs may be replayed for another one of classWake to begin while a supervisor
	// replays: without it they have no reservations, and requests about the run no answers, so the processors are for it.
	besideSupervisors = 8
)

// replayClass is the order in which actors that wait are activated.
type replayClass int

const (
	classSupervisor replayClass = iota // its agents wait for it
	classEntry                         // an entry has arrived
	classWake                          // nothing is new: its node takes it over, or it is due
	replayClasses
)

// classOf returns the class of an actor that is to be activated.
func classOf(at mailbox.Address, hasEntry bool) replayClass {
	switch {
	case at.Agent() == mailbox.Super:
		return classSupervisor
	case hasEntry:
		return classEntry
	}
	return classWake
}

// replayQueue decides which shells may start.
type replayQueue struct {
	most        int
	replaying   map[string]replayingShell // by the id of the shell
	supervisors int                       // among them
	queues      [replayClasses][]mailbox.Address
	waiting     map[mailbox.Address]replayClass // the queue in which an address counts
	timer       *time.Timer                     // until a replay does not count any more; nil: not armed
}

type replayingShell struct {
	began        time.Time
	isSupervisor bool
}

func newReplayQueue(most int) replayQueue {
	return replayQueue{most: most, replaying: map[string]replayingShell{}, waiting: map[mailbox.Address]replayClass{}}
}

// enter reports whether a shell may start now; otherwise its address waits.
func (q *replayQueue) enter(at mailbox.Address, class replayClass) bool {
	if len(q.waiting) == 0 && len(q.replaying) < q.limitOf(class) {
		return true
	}
	if was, waits := q.waiting[at]; !waits || class < was {
		q.waiting[at] = class
		q.queues[class] = append(q.queues[class], at)
	}
	return false
}

// next removes the address whose shell may start now.
func (q *replayQueue) next() (at mailbox.Address, ok bool) {
	for class := range q.queues {
		if len(q.replaying) >= q.limitOf(replayClass(class)) {
			return "", false
		}
		for len(q.queues[class]) > 0 {
			at, q.queues[class] = q.queues[class][0], q.queues[class][1:]
			if was, waits := q.waiting[at]; waits && was == replayClass(class) {
				delete(q.waiting, at)
				return at, true
			}
		}
		q.queues[class] = nil // frees the memory
	}
	return "", false
}

// limitOf returns below how many replays another one of a class may begin.
func (q *replayQueue) limitOf(class replayClass) int {
	if class == classWake && q.supervisors > 0 {
		return min(q.most, q.supervisors+besideSupervisors)
	}
	return q.most
}

// begin counts a shell that starts.
func (q *replayQueue) begin(id string, at mailbox.Address, now time.Time) {
	s := replayingShell{now, at.Agent() == mailbox.Super}
	q.replaying[id] = s
	if s.isSupervisor {
		q.supervisors++
	}
}

// end ends the count of a shell.
func (q *replayQueue) end(id string) {
	if q.replaying[id].isSupervisor {
		q.supervisors--
	}
	delete(q.replaying, id)
}

// expire ends the turns of replays that take too long.
func (q *replayQueue) expire(now time.Time) {
	for id, s := range q.replaying {
		turn := replayTurn
		if s.isSupervisor {
			turn = supervisorTurn
		}
		if now.Sub(s.began) > turn {
			q.end(id)
		}
	}
}

type (
	// shellReplayed says that a shell has replayed its log, or cannot now.
	shellReplayed struct{ pid *actor.PID }
	// replayTick says that the turn of a replay may be over.
	replayTick struct{}
)

// replayStarter starts shells of a router as the queue lets them.
type replayStarter struct{ *router }

// receive takes a message about replays.
func (s replayStarter) receive(c actor.Context) {
	switch m := c.Message().(type) {
	case shellReplayed:
		s.replays.end(m.pid.Id)
	case replayTick:
		s.replays.timer = nil
		s.replays.expire(time.Now())
	}
	s.startWaiting(c)
}

// mayReplay reports whether a shell may start now; otherwise it starts later.
func (s replayStarter) mayReplay(c actor.Context, at mailbox.Address, class replayClass) bool {
	if s.replays.enter(at, class) {
		return true
	}
	s.startWaiting(c) // sees to the timer
	return false
}

// startWaiting starts the shells that may start now.
func (s replayStarter) startWaiting(c actor.Context) {
	for {
		at, ok := s.replays.next()
		if !ok {
			break
		}
		if p := s.shells[at]; p != nil && p.pid == nil { // its last shell has crashed
			s.spawnShell(c, at, p)
		} else {
			s.openShell(c, at)
		}
	}
	if len(s.replays.waiting) > 0 && s.replays.timer == nil {
		s.replays.timer = sendAfter(c, replayTurn, replayTick{})
	}
}
