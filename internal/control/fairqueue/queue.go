// Package fairqueue orders the requests of one verb: it serves each at once if there is room, else in turns, so that no
// connection, owner or group takes the place of others, and it bounds what waits.
package fairqueue

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/micro"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
)

// Bounds of the requests of one verb. Verbs do not share them: a flood of one verb must not
// delay the others, least of all cancel.
const (
	requestsAtOnce = 64
	// groupAtOnce and sourceAtOnce bound the requests in progress of one group (the observers,
	// the clients, an owner or another user with inboxes of its own) and of one connection.
	groupAtOnce, sourceAtOnce = 56, client.RequestsAtOnce
	// waitingMax and waitingBytesMax bound the waiting requests.
	waitingMax      = 1024
	waitingBytesMax = 16 << 20
	// waitMax is how long a request may wait: less than a client waits for the answer. A client
	// sends a copy of its request meanwhile, which takes no place: see Ticket.Ask.
	waitMax = 8 * time.Second
)

// Ticket is one request to a verb.
type Ticket struct {
	group, source string
	// Ask names the request; "": the client gave it no name, or the logs cannot be
	// written. A copy of a named request that runs or waits is dropped.
	Ask           string
	size          int
	serve, refuse func()

	timer   *time.Timer
	arrival uint64
}

// foreignReplies is the prefix of the subjects on which a server passes replies to another
// account.
const foreignReplies = "_R_"

// NewTicket names the source of a request by its reply subject: each connection has a
// private inbox, and some users have a prefix of their own. A client may invent inboxes:
// each counts as a source, but all count toward its group. Requests without a credential
// come from another account, so all of them are one source; a request that wants no reply
// counts as one of them, because its sender is unknown. The requests of an owner count toward the
// group of that owner, whether the owner or a node sends them.
func NewTicket(owner, reply string, size int, serve, refuse func()) *Ticket {
	group, rest, _ := strings.Cut(cmp.Or(reply, foreignReplies), ".")
	if group == foreignReplies {
		rest = ""
	}
	connection, _, _ := strings.Cut(rest, ".")
	if owner != "" {
		group = bus.OwnerInbox(owner)
	}
	return &Ticket{group: group, source: group + "." + connection, size: size, serve: serve, refuse: refuse}
}

// slotShare counts the requests of a group or a source, and records when it last had a turn.
type slotShare struct {
	running, waiting int
	bytes            int // of what waits
	turn             uint64
}

// isUnused reports whether nothing runs or waits.
func (s *slotShare) isUnused() bool { return s.running == 0 && s.waiting == 0 }

// sourceShare is the share of a source, with its waiting requests, the oldest first.
type sourceShare struct {
	slotShare
	group   *slotShare
	tickets []*Ticket
	place   int // in Queue.waiters, while one waits
}

func (s *sourceShare) oldest() uint64 { return s.tickets[0].arrival }
func (s *sourceShare) newest() uint64 { return s.tickets[len(s.tickets)-1].arrival }

// Queue assigns the slots of one verb to requests: immediately if there is room, else in
// turns. The number and the bytes of waiting requests are bounded; beyond that the source
// with the most of either loses its newest request. A request that is refused must cost little more than it
// costs to send: all owners share the subscription of a verb, and whatever a decision takes, the others wait for it. So
// a decision looks at the sources that wait, and not at each request.
type Queue struct {
	mu             sync.Mutex
	running        int
	waiting, bytes int
	turn, arrivals uint64
	groups         map[string]*slotShare   // that run or wait
	sources        map[string]*sourceShare // that run or wait
	waiters        []*sourceShare          // of which requests wait, in any order
	asks           map[string]struct{}     // requests with a name that run or wait
}

// New returns a queue without requests.
func New() *Queue {
	return &Queue{groups: map[string]*slotShare{}, sources: map[string]*sourceShare{}, asks: map[string]struct{}{}}
}

// Enter serves a request now or in its turn, or refuses it. It drops a copy of a request.
func (l *Queue) Enter(t *Ticket) {
	l.mu.Lock()
	if _, copied := l.asks[t.Ask]; copied {
		l.mu.Unlock()
		return
	}
	if t.Ask != "" {
		l.asks[t.Ask] = struct{}{}
	}
	l.appendWaiting(t)
	next := l.takeNext()
	var refused []*Ticket
	for l.bytes > waitingBytesMax {
		refused = append(refused, l.refuseNewest(l.pickExcess(func(s *slotShare) int { return s.bytes })))
	}
	for l.waiting > waitingMax {
		refused = append(refused, l.refuseNewest(l.pickExcess(func(s *slotShare) int { return s.waiting })))
	}
	if next != t && !slices.Contains(refused, t) {
		t.timer = time.AfterFunc(waitMax, func() { l.expireTicket(t) })
	}
	l.mu.Unlock()
	if next != nil {
		next.serve()
	}
	for _, r := range refused {
		r.refuse()
	}
}

// Leave gives the slot of a request to the next.
func (l *Queue) Leave(t *Ticket) {
	l.mu.Lock()
	l.running--
	delete(l.asks, t.Ask)
	l.updateShares(t, func(s *slotShare) { s.running-- })
	next := l.takeNext()
	l.mu.Unlock()
	if next != nil {
		next.serve()
	}
}

// expireTicket refuses a request that has waited for too long.
func (l *Queue) expireTicket(t *Ticket) {
	l.mu.Lock()
	i := -1
	if s := l.sources[t.source]; s != nil {
		i = slices.Index(s.tickets, t)
	}
	if i >= 0 {
		l.dropWaiting(l.sources[t.source], i)
		delete(l.asks, t.Ask)
	}
	l.mu.Unlock()
	if i >= 0 {
		t.refuse()
	}
}

// sourceOf returns the share of a ticket's source, and makes it if it is missing. The caller holds mu.
func (l *Queue) sourceOf(t *Ticket) *sourceShare {
	group, source := l.groups[t.group], l.sources[t.source]
	if group == nil {
		group = &slotShare{turn: l.turn} // behind those that had their last turn before it came
		l.groups[t.group] = group
	}
	if source == nil {
		source = &sourceShare{slotShare: slotShare{turn: l.turn}, group: group}
		l.sources[t.source] = source
	}
	return source
}

// updateShares changes the shares of a ticket, and removes shares that no request uses. The caller
// holds mu.
func (l *Queue) updateShares(t *Ticket, change func(*slotShare)) {
	s := l.sourceOf(t)
	change(&s.slotShare)
	change(s.group)
	if s.isUnused() {
		delete(l.sources, t.source)
	}
	if s.group.isUnused() {
		delete(l.groups, t.group)
	}
}

func (l *Queue) appendWaiting(t *Ticket) {
	l.arrivals++
	t.arrival = l.arrivals
	s := l.sourceOf(t)
	if len(s.tickets) == 0 {
		s.place = len(l.waiters)
		l.waiters = append(l.waiters, s)
	}
	s.tickets = append(s.tickets, t)
	l.waiting++
	l.bytes += t.size
	l.updateShares(t, func(s *slotShare) { s.waiting, s.bytes = s.waiting+1, s.bytes+t.size })
}

// refuseNewest removes the newest waiting request of a source, which is not served. The caller holds mu.
func (l *Queue) refuseNewest(s *sourceShare) *Ticket {
	t := l.dropWaiting(s, len(s.tickets)-1)
	delete(l.asks, t.Ask)
	return t
}

// dropWaiting removes the i-th waiting request of a source. The caller holds mu.
func (l *Queue) dropWaiting(s *sourceShare, i int) *Ticket {
	t := s.tickets[i]
	s.tickets = slices.Delete(s.tickets, i, i+1)
	if len(s.tickets) == 0 {
		last := l.waiters[len(l.waiters)-1]
		l.waiters[s.place], last.place = last, s.place
		l.waiters = slices.Delete(l.waiters, len(l.waiters)-1, len(l.waiters))
	}
	l.waiting--
	l.bytes -= t.size
	if t.timer != nil {
		t.timer.Stop()
	}
	l.updateShares(t, func(s *slotShare) { s.waiting, s.bytes = s.waiting-1, s.bytes-t.size })
	return t
}

// takeNext returns the request whose turn it is, nil if there is no slot for any: that of the
// group with the fewest requests in progress, and within it of the source with the fewest;
// among equals, of the one that was served longest ago. The caller holds mu.
func (l *Queue) takeNext() *Ticket {
	if l.running >= requestsAtOnce {
		return nil
	}
	var best *sourceShare
	for _, s := range l.waiters {
		if s.group.running < groupAtOnce && s.running < sourceAtOnce && (best == nil || isBefore(s, best)) {
			best = s
		}
	}
	if best == nil {
		return nil
	}
	l.turn++
	l.running++
	t := best.tickets[0]
	l.updateShares(t, func(s *slotShare) { s.running, s.turn = s.running+1, l.turn })
	return l.dropWaiting(best, 0)
}

// isBefore reports whether it is the turn of a before that of b.
func isBefore(a, b *sourceShare) bool {
	return cmp.Or(
		cmp.Compare(a.group.running, b.group.running), cmp.Compare(a.group.turn, b.group.turn),
		cmp.Compare(a.running, b.running), cmp.Compare(a.turn, b.turn), cmp.Compare(a.oldest(), b.oldest()),
	) < 0
}

// pickExcess returns the source with the highest value of size, in the group with the highest; among equals, that of the
// newest request. The caller holds mu.
func (l *Queue) pickExcess(size func(*slotShare) int) *sourceShare {
	return slices.MaxFunc(l.waiters, func(a, b *sourceShare) int {
		return cmp.Or(cmp.Compare(size(a.group), size(b.group)), cmp.Compare(size(&a.slotShare), size(&b.slotShare)), cmp.Compare(a.newest(), b.newest()))
	})
}

// SizeOf is the memory of a request that waits, with its headers.
func SizeOf(r micro.Request) int {
	size := len(r.Data()) + len(r.Reply())
	for key, values := range r.Headers() {
		for _, v := range values {
			size += len(key) + len(v)
		}
	}
	return size
}
