package fairqueue

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// manualSlots is a Queue whose requests end when the test ends them.
type manualSlots struct {
	*Queue
	served, refused []string
	running         []*Ticket
}

func (s *manualSlots) enterRequest(reply string, size int) { s.enterOwned("", reply, size) }

func (s *manualSlots) enterOwned(owner, reply string, size int) {
	var t *Ticket
	t = NewTicket(owner, reply, size, func() { s.served, s.running = append(s.served, reply), append(s.running, t) },
		func() { s.refused = append(s.refused, reply) })
	s.Enter(t)
}

func (s *manualSlots) shares() int { return len(s.groups) + len(s.sources) + len(s.waiters) }

func (s *manualSlots) endOldest() {
	t := s.running[0]
	s.running = s.running[1:]
	s.Leave(t)
}

// TestAttackRequestsWithoutAnAnswerHaveNoShareOfTheirOwn: all senders without a credential,
// or that want no reply, have one share of a verb.
func TestAttackRequestsWithoutAnAnswerHaveNoShareOfTheirOwn(t *testing.T) {
	s := &manualSlots{Queue: New()}
	for range requestsAtOnce {
		s.enterRequest("", 10)
		s.enterRequest("_R_.hhpMYV.1", 10)
		s.enterRequest("_R_.other.1", 10)
	}
	if s.Queue.running != sourceAtOnce {
		t.Errorf("they have %d slots, want %d", s.Queue.running, sourceAtOnce)
	}
	s.enterRequest("_INBOX_client.a.1", 10)
	if got := s.served[len(s.served)-1]; got != "_INBOX_client.a.1" {
		t.Errorf("the user's own command waits behind %q", got)
	}
	for len(s.running) > 0 { // who still waits would be refused after the test
		s.endOldest()
	}
}

// TestAttackOneConnectionTakesItsShareOnly: one that floods a verb leaves slots, the
// next turn, and places in the queue to others.
func TestAttackOneConnectionTakesItsShareOnly(t *testing.T) {
	// On a virtual clock, so that no request expires while a busy machine plays the test.
	synctest.Test(t, func(t *testing.T) {
		s := &manualSlots{Queue: New()}
		for range 3 * waitingMax {
			s.enterRequest("_INBOX_client.hog.1", 10)
		}
		if len(s.served) != sourceAtOnce || s.waiting != waitingMax || len(s.refused) != 2*waitingMax-sourceAtOnce {
			t.Fatalf("%d served, %d wait, %d refused", len(s.served), s.waiting, len(s.refused))
		}
		s.enterRequest("_INBOX_client.other.1", 10)
		s.enterRequest("_INBOX.watcher.1", 10)
		if got := s.served[sourceAtOnce:]; fmt.Sprint(got) != "[_INBOX_client.other.1 _INBOX.watcher.1]" {
			t.Errorf("at once beside a hog: %v", got)
		}
		// Invented inboxes take the share of their group only.
		for i := range 200 {
			s.enterRequest(fmt.Sprintf("_INBOX_client.x%d.1", i), 10)
		}
		if n := s.groups["_INBOX_client"].running; n != groupAtOnce {
			t.Errorf("one group has %d under way, want %d", n, groupAtOnce)
		}
		for i := range 20 { // all slots
			s.enterRequest("_INBOX.w"+fmt.Sprint(i)+".1", 10)
		}
		if s.Queue.running != requestsAtOnce {
			t.Errorf("%d run, want %d", s.Queue.running, requestsAtOnce)
		}
		s.enterRequest("_INBOX_client_alice.a.1", 10)
		s.endOldest()
		if got := s.served[len(s.served)-1]; got != "_INBOX_client_alice.a.1" {
			t.Errorf("the next turn went to %s", got)
		}
		s.enterRequest("_INBOX.big.1", waitingBytesMax+1)
		if s.bytes > waitingBytesMax || s.waiting > waitingMax {
			t.Errorf("%d bytes and %d requests wait", s.bytes, s.waiting)
		}
		for len(s.running) > 0 {
			s.endOldest()
		}
		if s.waiting != 0 || s.bytes != 0 || s.Queue.running != 0 || s.shares() != 0 {
			t.Errorf("left: %d waiting, %d bytes, %d running, %d shares", s.waiting, s.bytes, s.Queue.running, s.shares())
		}
	})
}

// TestAttackOwnersThroughNodesHaveGroupsOfTheirOwn: requests that nodes send for an owner take the share of that owner, as those
// that the owner sends, and not that of all requests of nodes.
func TestAttackOwnersThroughNodesHaveGroupsOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &manualSlots{Queue: New()}
		for i := range 4 * sourceAtOnce {
			s.enterOwned("alice", fmt.Sprintf("_INBOX_client_node.n%d.1", i%4), 10)
			s.enterOwned("alice", "_INBOX_client_alice.a.1", 10)
			s.enterOwned("alice", "_INBOX_client_bob.a.1", 10)
			s.enterOwned("alice", "_INBOX_client.a.1", 10)
		}
		if s.Queue.running != groupAtOnce {
			t.Errorf("alice has %d slots, want %d", s.Queue.running, groupAtOnce)
		}
		for _, owner := range []string{"bob", ""} {
			before := len(s.served)
			if s.enterOwned(owner, "_INBOX_client_node.n0.1", 10); len(s.served) != before+1 {
				t.Errorf("a request of %q waits for those of alice", owner)
			}
		}
		for len(s.running) > 0 {
			s.endOldest()
		}
	})
}

// New connections come all the time, with one request each. One that has been served gets its next turn
// all the same.
func TestNewConnectionsDoNotOvertakeOneThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &manualSlots{Queue: New()}
		arrived := 0
		arrive := func() {
			arrived++
			s.enterRequest(fmt.Sprintf("_INBOX_client.x%d.1", arrived), 10)
		}
		for range groupAtOnce {
			arrive()
		}
		const requests = 3
		for range requests {
			s.enterRequest("_INBOX_client.old.1", 10)
		}
		for range 2 * requests * groupAtOnce {
			arrive()
			s.endOldest()
		}
		served := 0
		for _, reply := range s.served {
			if reply == "_INBOX_client.old.1" {
				served++
			}
		}
		if served != requests {
			t.Errorf("%d of %d requests were served, and %d of later connections", served, requests, len(s.served)-served-groupAtOnce)
		}
	})
}

// A client sends a copy of a request that is not answered soon. The copy takes no place in the
// queue while the request runs or waits; after that it is a request of its own.
func TestACopyOfARequestTakesNoPlace(t *testing.T) {
	l := New()
	served := 0
	ask := func(name string) *Ticket {
		k := NewTicket("", "_INBOX_client.a.1", 0, func() { served++ }, func() { t.Error("a copy is refused") })
		k.Ask = name
		return k
	}
	first := ask("1")
	l.Enter(first)
	l.Enter(ask("1"))
	for range sourceAtOnce - 1 {
		l.Enter(ask(""))
	}
	l.Enter(ask("2"))
	l.Enter(ask("2"))
	if served != sourceAtOnce || l.waiting != 1 {
		t.Fatalf("%d served, %d wait", served, l.waiting)
	}
	l.Leave(first)
	l.Leave(ask(""))
	if l.Enter(ask("1")); served != sourceAtOnce+2 || len(l.asks) != 2 {
		t.Errorf("%d served, %d named", served, len(l.asks))
	}
}

func TestARequestThatWaitedTooLongIsRefused(t *testing.T) {
	l := New()
	for range sourceAtOnce {
		l.Enter(NewTicket("", "_INBOX.a.1", 0, func() {}, func() {}))
	}
	served, refused := 0, 0
	late := NewTicket("", "_INBOX.a.1", 0, func() { served++ }, func() { refused++ })
	l.Enter(late)
	l.expireTicket(late)
	l.expireTicket(late)
	l.Leave(NewTicket("", "_INBOX.a.1", 0, nil, nil))
	if served != 0 || refused != 1 || l.waiting != 0 {
		t.Errorf("served %d, refused %d", served, refused)
	}
}

// TestAttackBigRequestsCostTheirSenderOnly: one source fills the bytes that may wait with a
// few requests. The many small requests of other sources would free nothing, so they stay.
func TestAttackBigRequestsCostTheirSenderOnly(t *testing.T) {
	const big = 1 << 20
	s := &manualSlots{Queue: New()}
	for i := range requestsAtOnce {
		s.enterRequest(fmt.Sprintf("_INBOX_%d.a.1", i), 0)
	}
	for i := range 100 {
		s.enterRequest(fmt.Sprintf("_INBOX_client.c%d.1", i%4), 10)
	}
	for range waitingBytesMax/big + 4 {
		s.enterRequest("_INBOX.hog.1", big)
	}
	for _, reply := range s.refused {
		if reply != "_INBOX.hog.1" {
			t.Errorf("%s is refused for the bytes of another", reply)
		}
	}
	if s.bytes > waitingBytesMax || len(s.refused) == 0 {
		t.Errorf("%d bytes wait, %d are refused", s.bytes, len(s.refused))
	}
	for range requestsAtOnce {
		s.endOldest()
	}
	for len(s.running) > 0 {
		s.endOldest()
	}
	if s.shares() != 0 || s.bytes != 0 {
		t.Errorf("left: %d shares, %d bytes", s.shares(), s.bytes)
	}
}

// TestAttackRefusedRequestsKeepNoMemory: the Queue holds no request that it gave away.
func TestAttackRefusedRequestsKeepNoMemory(t *testing.T) {
	s := &manualSlots{Queue: New()}
	for range sourceAtOnce + waitingMax {
		s.enterRequest("_INBOX.hog.1", 10)
	}
	hog := s.waiters[0]
	for s.waiting > 0 {
		s.dropWaiting(hog, len(hog.tickets)/2)
	}
	for i, held := range hog.tickets[:cap(hog.tickets)] {
		if held != nil {
			t.Fatalf("place %d of %d holds a request that does not wait", i, cap(hog.tickets))
		}
	}
	if held := s.waiters[:cap(s.waiters)]; len(s.waiters) > 0 || slices.ContainsFunc(held, func(s *sourceShare) bool { return s != nil }) {
		t.Errorf("%d sources wait, and %v are held", len(s.waiters), held)
	}
}

// TestAttackARefusalCostsLittle: all owners share the subscription of a verb, so each waits while the queue decides about
// the requests of an owner who floods it. A decision looks at the sources that wait, not at their requests: with few
// sources it costs a small part of what it costs with as many sources as requests.
func TestAttackARefusalCostsLittle(t *testing.T) {
	few, many := timeOfRefusal(4), timeOfRefusal(4096)
	t.Logf("a refused request: %v with 4 sources, %v with 4,096", few, many) // 180 µs with either when it looked at all requests
	if few > many/4 {
		t.Errorf("a refused request costs %v with 4 sources and %v with 4,096, want at most a quarter", few, many)
	}
}

// timeOfRefusal returns the least time of five floods for each request that a full queue refuses, from a number of
// sources of one owner.
func timeOfRefusal(sources int) time.Duration {
	const requests = 2000
	s := &manualSlots{Queue: New()}
	flood := func() {
		for i := range requests {
			s.enterOwned("bob", fmt.Sprintf("_INBOX_client_bob.c%d.1", i%sources), 10)
		}
	}
	flood()
	fastest := time.Hour
	for range 5 {
		began := time.Now()
		flood()
		fastest = min(fastest, time.Since(began)/requests)
	}
	for len(s.running) > 0 {
		s.endOldest()
	}
	return fastest
}
