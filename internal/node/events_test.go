package node

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
)

// cuttableDialer is a TCP dialer that the test can cut.
type cuttableDialer struct {
	mu   sync.Mutex
	conn net.Conn
	open chan struct{} // closed while dialing may go on
}

func (c *cuttableDialer) Dial(network, address string) (net.Conn, error) {
	c.mu.Lock()
	open := c.open
	c.mu.Unlock()
	<-open
	conn, err := net.Dial(network, address)
	c.mu.Lock()
	c.conn = conn
	c.mu.Unlock()
	return conn, err
}

// cutConnection ends the connection; it stays so until mend is called.
func (c *cuttableDialer) cutConnection(t *testing.T) (mend func()) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	open := make(chan struct{})
	c.open = open
	if err := c.conn.Close(); err != nil {
		t.Error(err)
	}
	return sync.OnceFunc(func() { close(open) })
}

// byCable connects a client by a cable that can be cut.
func byCable(t *testing.T, h *Node, back nats.ConnHandler) (*nats.Conn, *cuttableDialer) {
	t.Helper()
	wire := &cuttableDialer{open: make(chan struct{})}
	close(wire.open)
	user, password := h.embedded.Credential(bus.RoleClient)
	nc, err := nats.Connect(h.URL(), nats.UserInfo(user, password), nats.CustomInboxPrefix(bus.InboxPrefix(bus.RoleClient)),
		nats.SetCustomDialer(wire), nats.ReconnectWait(time.Millisecond), nats.ReconnectJitter(0, 0), nats.MaxReconnects(-1),
		nats.ReconnectHandler(back))
	if err != nil {
		t.Fatal(err)
	}
	return nc, wire
}

// A follower whose connection is cut, twice, while things happen, gets all of
// it, each log in its order.
//
//behaviour:shows I2
func TestAFollowerThatReconnectsMissesNothing(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	model, gate, agents := heldFamily(t)
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{agents} })
	c := connectClient(t, h)
	id := beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "boss"})

	back := make(chan struct{}, 1)
	nc, wire := byCable(t, h, func(*nats.Conn) { back <- struct{}{} })
	defer nc.Close()

	seen, done := make(chan string, 1024), make(chan error, 1)
	go func() {
		done <- client.New(nc, h.names).Events(testContext(t), id, nil, true, func(e client.Event, _ []byte) error {
			if e.Seq > 0 {
				seen <- e.ID + " " + e.Kind
			}
			return nil
		})
	}()
	var got []string
	for count := 0; count < 2; {
		line := <-seen
		got = append(got, line)
		if strings.HasSuffix(line, " tool.started") {
			count++
		}
	}
	// An event happens while no observer is connected, and more after that.
	mend := wire.cutConnection(t)
	defer mend()
	if err := c.Steer(testContext(t), client.SteerRequest{RunID: id, Text: "be quick"}); err != nil {
		t.Fatal(err)
	}
	if err := c.Budget(testContext(t), client.BudgetRequest{RunID: id, Limits: limitsOf(t, h, id)}); err != nil {
		t.Fatal(err)
	}
	awaitEvents(t, c, id, event.KindBudgetChanged, 1)
	mend()
	<-back
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	mend = wire.cutConnection(t)
	defer mend()
	openGate(t, gate)
	waitFinished(t, c, id, spec.Completed)
	mend()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for len(seen) > 0 {
		got = append(got, <-seen)
	}
	want, _ := pagedEvents(t, c, id)
	for i := range got {
		got[i], _, _ = strings.Cut(got[i], " ")
	}
	compareLogs(t, got, want)
	if !strings.Contains(got[len(got)-1], ".super#") {
		t.Errorf("the last is %s", got[len(got)-1])
	}
}

// compareLogs checks that two lists have the same ids, in the same order of
// each log.
func compareLogs(t *testing.T, got, want []string) {
	t.Helper()
	split := func(ids []string) map[string][]string {
		logs := map[string][]string{}
		for _, id := range ids {
			at, _, _ := strings.Cut(id, "#")
			logs[at] = append(logs[at], id)
		}
		return logs
	}
	g, w := split(got), split(want)
	for at := range w {
		if !slices.Equal(g[at], w[at]) {
			t.Errorf("%s:\n got %v\nwant %v", at, g[at], w[at])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d events, want %d", len(got), len(want))
	}
}

// A follower over NATS whose connection is closed 1,000 times at random, and that continues from the positions of the
// events that it has, ends with exactly the events of the logs.
//
//behaviour:shows I2
func TestFlappingFollowerEndsWithTheEventsOfTheLogs(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	model, gate, agents := heldFamily(t)
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{agents} })
	c := connectClient(t, h)
	id := beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "boss"})
	random, seen := rand.New(rand.NewPCG(1, 4)), client.Positions{}
	const dropsMin = 1000
	var got []string
	for drops := range dropsMin + 1 {
		if drops == dropsMin/2 {
			openGate(t, gate)
		}
		ids, err := followDropped(t, h, id, seen, random, drops < dropsMin)
		got = append(got, ids...)
		if drops == dropsMin && err != nil {
			t.Fatal(err)
		}
	}
	want, _ := pagedEvents(t, c, id)
	compareLogs(t, got, want)
}

// followDropped follows a run over a connection of its own, which is closed after a random time, or after some events.
func followDropped(t *testing.T, h *Node, run string, seen client.Positions, random *rand.Rand, drop bool) (ids []string, err error) {
	t.Helper()
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	user, password := h.embedded.Credential(bus.RoleClient)
	nc, err := nats.Connect(h.URL(), nats.UserInfo(user, password), nats.CustomInboxPrefix(bus.InboxPrefix(bus.RoleClient)), nats.NoReconnect())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	most := 1 << 30
	if drop {
		most = 1 + random.IntN(3)
		timer := time.AfterFunc(time.Duration(random.IntN(1500))*time.Microsecond, func() { nc.Close(); cancel() })
		defer timer.Stop()
	}
	errDropped := errors.New("dropped")
	err = client.New(nc, h.names).Events(ctx, run, seen.Cursor(), true, func(e client.Event, _ []byte) error {
		if e.Seq > 0 && seen.Advance(e) {
			ids = append(ids, e.ID)
		}
		if len(ids) >= most {
			return errDropped
		}
		return nil
	})
	return ids, err
}

// A cursor from the middle skips the events that were seen, and no others.
//
//behaviour:shows I2
func TestACursorFromTheMiddle(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	h := startNode(t, t.TempDir())
	c := connectClient(t, h)
	id := beginRun(t, c, client.RunRequest{Model: writeScript(t, family)})
	waitFinished(t, c, id, spec.Completed)
	all, _ := pagedEvents(t, c, id)
	half := all[:len(all)/2]
	seen := client.Cursor{}
	last := ""
	for _, id := range half {
		at, n := whereIs(t, id)
		seen[at], last = n, id
	}
	var rest []string
	err := c.Events(testContext(t), id, seen, true, func(e client.Event, _ []byte) error {
		rest = append(rest, e.ID)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range all[len(half):] {
		at, n := whereIs(t, id)
		if n > seen[at] != slices.Contains(rest, id) {
			t.Errorf("%s after a cursor at %s", id, last)
		}
	}
	for _, id := range half {
		if slices.Contains(rest, id) {
			t.Errorf("%s again", id)
		}
	}
}

// The server in the process would drop events that nobody receives, so the node publishes none.
func TestEventsWithoutAnObserverAreNotPublished(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	dir := newRepository(t)
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{dir} })
	c := connectClient(t, h)
	request := client.RunRequest{Dir: dir, Model: "builtin/scout"}

	alone := beginRun(t, c, request)
	waitUntil(t, "the run is finished", func() bool {
		row, ok := findRow(t, c, alone)
		return ok && row.State == client.RunFinished
	})
	if sent := h.eventConn.Stats().OutMsgs; sent != 0 {
		t.Errorf("%d events were published without an observer", sent)
	}

	observer := recordEvents(t, h)
	watched := beginRun(t, c, request)
	waitFinished(t, c, watched, spec.Completed)
	_, want := pagedEvents(t, c, watched)
	sameEvents(t, observer.waitForEvents(t, watched, want), want)
}
