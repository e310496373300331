package control

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Bounds of the requests of one verb. Verbs do not share them: a flood of one verb must not
// delay the others, least of all cancel.
const (
	requestsAtOnce = 64
	// groupAtOnce and sourceAtOnce bound the requests in progress of one group (the observers,
	// the clients, a user with inboxes of his own) and of one connection.
	groupAtOnce, sourceAtOnce = 56, 32
	// waitingMax and waitingBytesMax bound the waiting requests.
	waitingMax      = 1024
	waitingBytesMax = 16 << 20
	// waitMax is how long a request may wait: less than the time after which a client retries.
	waitMax = 2 * time.Second
	// retryAfter is when a client that was refused may retry.
	retryAfter = 250 * time.Millisecond
)

// ticket is one request to a verb.
type ticket struct {
	group, source string
	size          int
	serve, refuse func()

	timer *time.Timer
}

// foreignReplies is the prefix of the subjects on which a server passes replies to another
// account.
const foreignReplies = "_R_"

// newTicket names the source of a request by its reply subject: each connection has a
// private inbox, and some users have a prefix of their own. A client may invent inboxes:
// each counts as a source, but all count toward its group. Requests without a credential
// come from another account, so all of them are one source; a request that wants no reply
// counts as one of them, because its sender is unknown.
func newTicket(reply string, size int, serve, refuse func()) *ticket {
	group, rest, _ := strings.Cut(cmp.Or(reply, foreignReplies), ".")
	if group == foreignReplies {
		rest = ""
	}
	connection, _, _ := strings.Cut(rest, ".")
	return &ticket{group: group, source: group + "." + connection, size: size, serve: serve, refuse: refuse}
}

// share counts the requests of a group or a source, and records when it last had a turn.
type share struct {
	running, waiting int
	bytes            int // of what waits
	turn             uint64
}

// lane assigns the slots of one verb to requests: immediately if there is room, else in
// turns. The number and the bytes of waiting requests are bounded; beyond that the source
// with the most of either loses its newest request.
type lane struct {
	mu      sync.Mutex
	running int
	waiting []*ticket // oldest first
	bytes   int
	turn    uint64
	shares  map[string]*share // groups and sources that run or wait
}

func newLane() *lane { return &lane{shares: map[string]*share{}} }

// enter serves a request now or in its turn, or refuses it.
func (l *lane) enter(t *ticket) {
	l.mu.Lock()
	l.queue(t)
	next := l.next()
	var refused []*ticket
	for l.bytes > waitingBytesMax {
		refused = append(refused, l.drop(l.excess(func(s *share) int { return s.bytes })))
	}
	for len(l.waiting) > waitingMax {
		refused = append(refused, l.drop(l.excess(func(s *share) int { return s.waiting })))
	}
	if next != t && t.waits(l) {
		t.timer = time.AfterFunc(waitMax, func() { l.expire(t) })
	}
	l.mu.Unlock()
	if next != nil {
		next.serve()
	}
	for _, r := range refused {
		r.refuse()
	}
}

func (t *ticket) waits(l *lane) bool { return l.index(t) >= 0 }

func (l *lane) index(t *ticket) int {
	for i := len(l.waiting) - 1; i >= 0; i-- {
		if l.waiting[i] == t {
			return i
		}
	}
	return -1
}

// leave gives the slot of a request to the next.
func (l *lane) leave(t *ticket) {
	l.mu.Lock()
	l.running--
	l.count(t, func(s *share) { s.running-- })
	next := l.next()
	l.mu.Unlock()
	if next != nil {
		next.serve()
	}
}

// expire refuses a request that has waited for too long.
func (l *lane) expire(t *ticket) {
	l.mu.Lock()
	i := l.index(t)
	if i >= 0 {
		l.drop(i)
	}
	l.mu.Unlock()
	if i >= 0 {
		t.refuse()
	}
}

// count changes the shares of a ticket, and removes shares that no request uses. The caller
// holds mu.
func (l *lane) count(t *ticket, change func(*share)) {
	for _, name := range []string{t.group, t.source} {
		s := l.shares[name]
		if s == nil {
			s = &share{}
			l.shares[name] = s
		}
		change(s)
		if s.running == 0 && s.waiting == 0 {
			delete(l.shares, name)
		}
	}
}

func (l *lane) queue(t *ticket) {
	l.waiting = append(l.waiting, t)
	l.bytes += t.size
	l.count(t, func(s *share) { s.waiting, s.bytes = s.waiting+1, s.bytes+t.size })
}

// drop removes the i-th waiting request. The caller holds mu.
func (l *lane) drop(i int) *ticket {
	t := l.waiting[i]
	l.waiting = slices.Delete(l.waiting, i, i+1)
	l.bytes -= t.size
	if t.timer != nil {
		t.timer.Stop()
	}
	l.count(t, func(s *share) { s.waiting, s.bytes = s.waiting-1, s.bytes-t.size })
	return t
}

// next returns the request whose turn it is, nil if there is no slot for any: that of the
// group with the fewest requests in progress, and within it of the source with the fewest;
// among equals, of the one that was served longest ago. The caller holds mu.
func (l *lane) next() *ticket {
	if l.running >= requestsAtOnce {
		return nil
	}
	best := -1
	for i, t := range l.waiting {
		if l.shares[t.group].running < groupAtOnce && l.shares[t.source].running < sourceAtOnce && (best < 0 || l.before(t, l.waiting[best])) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	l.turn++
	l.running++
	t := l.waiting[best]
	l.count(t, func(s *share) { s.running, s.turn = s.running+1, l.turn })
	return l.drop(best)
}

func (l *lane) before(a, b *ticket) bool {
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

// excess returns the newest waiting request of the source with the highest value of size,
// in the group with the highest. The caller holds mu.
func (l *lane) excess(size func(*share) int) int {
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
