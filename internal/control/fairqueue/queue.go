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

	timer *time.Timer
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

// Queue assigns the slots of one verb to requests: immediately if there is room, else in
// turns. The number and the bytes of waiting requests are bounded; beyond that the source
// with the most of either loses its newest request.
type Queue struct {
	mu      sync.Mutex
	running int
	waiting []*Ticket // oldest first
	bytes   int
	turn    uint64
	shares  map[string]*slotShare // groups and sources that run or wait
	asks    map[string]struct{}   // requests with a name that run or wait
}

// New returns a queue without requests.
func New() *Queue {
	return &Queue{shares: map[string]*slotShare{}, asks: map[string]struct{}{}}
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
		refused = append(refused, l.refuseWaiting(l.pickExcess(func(s *slotShare) int { return s.bytes })))
	}
	for len(l.waiting) > waitingMax {
		refused = append(refused, l.refuseWaiting(l.pickExcess(func(s *slotShare) int { return s.waiting })))
	}
	if next != t && t.isWaiting(l) {
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

func (t *Ticket) isWaiting(l *Queue) bool { return l.waitingIndex(t) >= 0 }

func (l *Queue) waitingIndex(t *Ticket) int {
	for i := len(l.waiting) - 1; i >= 0; i-- {
		if l.waiting[i] == t {
			return i
		}
	}
	return -1
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
	i := l.waitingIndex(t)
	if i >= 0 {
		l.refuseWaiting(i)
	}
	l.mu.Unlock()
	if i >= 0 {
		t.refuse()
	}
}

// updateShares changes the shares of a ticket, and removes shares that no request uses. The caller
// holds mu.
func (l *Queue) updateShares(t *Ticket, change func(*slotShare)) {
	for _, name := range []string{t.group, t.source} {
		s := l.shares[name]
		if s == nil {
			s = &slotShare{turn: l.turn} // behind those that had their last turn before it came
			l.shares[name] = s
		}
		change(s)
		if s.running == 0 && s.waiting == 0 {
			delete(l.shares, name)
		}
	}
}

func (l *Queue) appendWaiting(t *Ticket) {
	l.waiting = append(l.waiting, t)
	l.bytes += t.size
	l.updateShares(t, func(s *slotShare) { s.waiting, s.bytes = s.waiting+1, s.bytes+t.size })
}

// refuseWaiting removes the i-th waiting request, which is not served. The caller holds mu.
func (l *Queue) refuseWaiting(i int) *Ticket {
	t := l.dropWaiting(i)
	delete(l.asks, t.Ask)
	return t
}

// dropWaiting removes the i-th waiting request. The caller holds mu.
func (l *Queue) dropWaiting(i int) *Ticket {
	t := l.waiting[i]
	l.waiting = slices.Delete(l.waiting, i, i+1)
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
	best := -1
	for i, t := range l.waiting {
		if l.shares[t.group].running < groupAtOnce && l.shares[t.source].running < sourceAtOnce && (best < 0 || l.isBefore(t, l.waiting[best])) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	l.turn++
	l.running++
	t := l.waiting[best]
	l.updateShares(t, func(s *slotShare) { s.running, s.turn = s.running+1, l.turn })
	return l.dropWaiting(best)
}

func (l *Queue) isBefore(a, b *Ticket) bool {
	for _, names := range [][2]string{{a.group, b.group}, {a.source, b.source}} {
		x, y := l.shares[names[0]], l.shares[names[1]]
		switch {
		case names[0] == names[1]:
		case x.running != y.running:
			return x.running < y.running
		default:
			return x.turn < y.turn
		}
	}
	return false // the older one
}

// pickExcess returns the newest waiting request of the source with the highest value of size,
// in the group with the highest. The caller holds mu.
func (l *Queue) pickExcess(size func(*slotShare) int) int {
	worst := len(l.waiting) - 1
	for i := worst - 1; i >= 0; i-- {
		t, w := l.waiting[i], l.waiting[worst]
		group, most := size(l.shares[t.group]), size(l.shares[w.group])
		if group > most || group == most && size(l.shares[t.source]) > size(l.shares[w.source]) {
			worst = i
		}
	}
	return worst
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
