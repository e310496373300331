package control

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/bustest"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/bus/names"
)

// manualSlots is a fairQueue whose requests end when the test ends them.
type manualSlots struct {
	*fairQueue
	served, refused []string
	running         []*requestTicket
}

func (s *manualSlots) enterRequest(reply string, size int) { s.enterOwned("", reply, size) }

func (s *manualSlots) enterOwned(owner, reply string, size int) {
	var t *requestTicket
	t = newTicket(owner, reply, size, func() { s.served, s.running = append(s.served, reply), append(s.running, t) },
		func() { s.refused = append(s.refused, reply) })
	s.enter(t)
}

func (s *manualSlots) endOldest() {
	t := s.running[0]
	s.running = s.running[1:]
	s.leave(t)
}

// TestAttackRequestsWithoutAnAnswerHaveNoShareOfTheirOwn: all senders without a credential,
// or that want no reply, have one share of a verb.
func TestAttackRequestsWithoutAnAnswerHaveNoShareOfTheirOwn(t *testing.T) {
	s := &manualSlots{fairQueue: newFairQueue()}
	for range requestsAtOnce {
		s.enterRequest("", 10)
		s.enterRequest("_R_.hhpMYV.1", 10)
		s.enterRequest("_R_.other.1", 10)
	}
	if s.fairQueue.running != sourceAtOnce {
		t.Errorf("they have %d slots, want %d", s.fairQueue.running, sourceAtOnce)
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
		s := &manualSlots{fairQueue: newFairQueue()}
		for range 3 * waitingMax {
			s.enterRequest("_INBOX_client.hog.1", 10)
		}
		if len(s.served) != sourceAtOnce || len(s.waiting) != waitingMax || len(s.refused) != 2*waitingMax-sourceAtOnce {
			t.Fatalf("%d served, %d wait, %d refused", len(s.served), len(s.waiting), len(s.refused))
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
		if n := s.shares["_INBOX_client"].running; n != groupAtOnce {
			t.Errorf("one group has %d under way, want %d", n, groupAtOnce)
		}
		for i := range 20 { // all slots
			s.enterRequest("_INBOX.w"+fmt.Sprint(i)+".1", 10)
		}
		if s.fairQueue.running != requestsAtOnce {
			t.Errorf("%d run, want %d", s.fairQueue.running, requestsAtOnce)
		}
		s.enterRequest("_INBOX_client_alice.a.1", 10)
		s.endOldest()
		if got := s.served[len(s.served)-1]; got != "_INBOX_client_alice.a.1" {
			t.Errorf("the next turn went to %s", got)
		}
		s.enterRequest("_INBOX.big.1", waitingBytesMax+1)
		if s.bytes > waitingBytesMax || len(s.waiting) > waitingMax {
			t.Errorf("%d bytes and %d requests wait", s.bytes, len(s.waiting))
		}
		for len(s.running) > 0 {
			s.endOldest()
		}
		if len(s.waiting) != 0 || s.bytes != 0 || s.fairQueue.running != 0 || len(s.shares) != 0 {
			t.Errorf("left: %d waiting, %d bytes, %d running, %d shares", len(s.waiting), s.bytes, s.fairQueue.running, len(s.shares))
		}
	})
}

// TestAttackOwnersThroughNodesHaveGroupsOfTheirOwn: requests that nodes send for an owner take the share of that owner, as those
// that the owner sends, and not that of all requests of nodes.
func TestAttackOwnersThroughNodesHaveGroupsOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &manualSlots{fairQueue: newFairQueue()}
		for i := range 4 * sourceAtOnce {
			s.enterOwned("alice", fmt.Sprintf("_INBOX_client_node.n%d.1", i%4), 10)
			s.enterOwned("alice", "_INBOX_client_alice.a.1", 10)
			s.enterOwned("alice", "_INBOX_client_bob.a.1", 10)
			s.enterOwned("alice", "_INBOX_client.a.1", 10)
		}
		if s.fairQueue.running != groupAtOnce {
			t.Errorf("alice has %d slots, want %d", s.fairQueue.running, groupAtOnce)
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
		s := &manualSlots{fairQueue: newFairQueue()}
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
	l := newFairQueue()
	served := 0
	ask := func(name string) *requestTicket {
		k := newTicket("", "_INBOX_client.a.1", 0, func() { served++ }, func() { t.Error("a copy is refused") })
		k.ask = name
		return k
	}
	first := ask("1")
	l.enter(first)
	l.enter(ask("1"))
	for range sourceAtOnce - 1 {
		l.enter(ask(""))
	}
	l.enter(ask("2"))
	l.enter(ask("2"))
	if served != sourceAtOnce || len(l.waiting) != 1 {
		t.Fatalf("%d served, %d wait", served, len(l.waiting))
	}
	l.leave(first)
	l.leave(ask(""))
	if l.enter(ask("1")); served != sourceAtOnce+2 || len(l.asks) != 2 {
		t.Errorf("%d served, %d named", served, len(l.asks))
	}
}

func TestARequestThatWaitedTooLongIsRefused(t *testing.T) {
	l := newFairQueue()
	for range sourceAtOnce {
		l.enter(newTicket("", "_INBOX.a.1", 0, func() {}, func() {}))
	}
	served, refused := 0, 0
	late := newTicket("", "_INBOX.a.1", 0, func() { served++ }, func() { refused++ })
	l.enter(late)
	l.expireTicket(late)
	l.expireTicket(late)
	l.leave(newTicket("", "_INBOX.a.1", 0, nil, nil))
	if served != 0 || refused != 1 || len(l.waiting) != 0 {
		t.Errorf("served %d, refused %d", served, refused)
	}
}

// TestAttackAHogDoesNotKeepOthersFromAnAnswer: 1,000 requests at once by one
// connection, to a verb that takes 50 ms; another one gets its answer within two
// seconds, and the hog's requests end as answers or as refusals that say when to
// come again.
func TestAttackAHogDoesNotKeepOthersFromAnAnswer(t *testing.T) {
	bustest.Bubble(t, aHogDoesNotKeepOthersFromAnAnswer)
}

func aHogDoesNotKeepOthersFromAnAnswer(t *testing.T) {
	const requests, bound = 1000, 2 * time.Second
	e := startEmbedded(t)
	slow := func() client.NodeInfo {
		<-time.After(50 * time.Millisecond) // of the bubble
		return client.NodeInfo{}
	}
	c, err := Serve(Config{Conn: dialRole(t, e, bus.RoleService), Names: names.Names{}, Name: "one", Machine: "m", NoActors: true, Self: slow})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	hog, inbox := dialRole(t, e, bus.RoleClient), ""
	inbox = hog.NewInbox()
	answers, err := hog.SubscribeSync(inbox)
	if err != nil {
		t.Fatal(err)
	}
	for range requests {
		if err := hog.PublishRequest("troupe.cmd.nodes", inbox, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := hog.Flush(); err != nil {
		t.Fatal(err)
	}
	asks := client.New(dialRole(t, e, bus.RoleClient), names.Names{})
	for range 3 {
		began := time.Now()
		if _, err := asks.Nodes(t.Context()); err != nil || time.Since(began) > bound {
			t.Errorf("beside a hog: %v after %v", err, time.Since(began))
		}
	}
	for i := range requests {
		m, err := answers.NextMsg(time.Minute)
		if err != nil {
			t.Fatalf("%d of %d requests have no answer: %v", requests-i, requests, err)
		}
		if m.Header.Get("Nats-Service-Error-Code") != "" && m.Header.Get(client.RetryHeader) == "" {
			t.Fatalf("a refusal does not say when to come again: %v", m.Header)
		}
	}
}

// TestABusyNodeIsAskedAgain: a client that is refused for its number of requests
// comes again, and many at once all get their answer.
func TestABusyNodeIsAskedAgain(t *testing.T) {
	e := startEmbedded(t)
	nc := dialRole(t, e, bus.RoleService)
	calls := 0
	_, err := nc.Subscribe("troupe.cmd.list", func(m *nats.Msg) {
		calls++
		answer := &nats.Msg{Subject: m.Reply, Data: []byte("[]")}
		if calls < 3 {
			answer = &nats.Msg{Subject: m.Reply, Header: nats.Header{"Nats-Service-Error-Code": {"429"}, client.RetryHeader: {"10"}}}
		}
		if err := nc.PublishMsg(answer); err != nil {
			t.Error(err)
		}
	})
	if err != nil || nc.Flush() != nil {
		t.Fatal(err)
	}
	asks := client.New(dialRole(t, e, bus.RoleClient), names.Names{})
	if _, err := asks.List(t.Context()); err != nil || calls != 3 {
		t.Errorf("after %d calls: %v", calls, err)
	}
	var refused *client.Error
	if full := error(&client.Error{Code: client.CodeLimit}); client.Busy(full) || !errors.As(full, &refused) {
		t.Error("logs that are full are not busy")
	}
}

// TestAttackInventedInboxesTakeNoTurns: with --open-control, a connection without a
// credential invents inboxes, its own and those of others. The server names where its
// replies go, so it has one share, and a client gets a reply immediately.
func TestAttackInventedInboxesTakeNoTurns(t *testing.T) {
	e := embeddedAs(t, embedded.Config{Port: embedded.FreePort, OpenControl: true})
	full, done := make(chan struct{}, 10*requestsAtOnce), make(chan struct{})
	slow := func() client.NodeInfo {
		select {
		case full <- struct{}{}:
		case <-done:
		}
		<-done
		return client.NodeInfo{}
	}
	c, err := Serve(Config{Conn: dialRole(t, e, bus.RoleService), Names: names.Names{}, Name: "one", Machine: "m", NoActors: true, Self: slow})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	hog, err := bus.Connect(bus.Options{Servers: e.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hog.Close)
	for i := range 4 * requestsAtOnce {
		for _, inbox := range []string{"_INBOX_client_x%d.a.1", "_INBOX_client.x%d.1", "_INBOX.x%d.1"} {
			if err := hog.PublishRequest("troupe.cmd.nodes", fmt.Sprintf(inbox, i), nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := hog.Flush(); err != nil {
		t.Fatal(err)
	}
	for range sourceAtOnce {
		<-full
	}
	asked := make(chan error, 1)
	go func() {
		_, err := client.New(dialRole(t, e, bus.RoleClient), names.Names{}).Nodes(t.Context())
		asked <- err
	}()
	<-full // the client's, or one more of the hog
	if n := len(full); n > 0 {
		t.Errorf("the hog has %d and more requests under way, want %d", sourceAtOnce+n, sourceAtOnce)
	}
	close(done)
	if err := <-asked; err != nil {
		t.Error(err)
	}
}

// TestAttackBigRequestsCostTheirSenderOnly: one source fills the bytes that may wait with a
// few requests. The many small requests of other sources would free nothing, so they stay.
func TestAttackBigRequestsCostTheirSenderOnly(t *testing.T) {
	const big = 1 << 20
	s := &manualSlots{fairQueue: newFairQueue()}
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
	if len(s.shares) != 0 || s.bytes != 0 {
		t.Errorf("left: %d shares, %d bytes", len(s.shares), s.bytes)
	}
}

// TestAttackRefusedRequestsKeepNoMemory: the fairQueue holds no request that it gave away.
func TestAttackRefusedRequestsKeepNoMemory(t *testing.T) {
	s := &manualSlots{fairQueue: newFairQueue()}
	for range sourceAtOnce + waitingMax {
		s.enterRequest("_INBOX.hog.1", 10)
	}
	for len(s.waiting) > 0 {
		s.dropWaiting(len(s.waiting) / 2)
	}
	for i, held := range s.waiting[:cap(s.waiting)] {
		if held != nil {
			t.Fatalf("place %d of %d holds a request that does not wait", i, cap(s.waiting))
		}
	}
}
