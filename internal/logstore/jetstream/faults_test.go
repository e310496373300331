package jetstream_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	native "github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/logstore/jetstream"
	"github.com/troupe-run/troupe/mailbox"
)

// patience ends a test that waits for something that does not come.
const patience = 60 * time.Second

// pause lies between two looks at what a test waits for.
const pause = 10 * time.Millisecond

// rarely is when an append is sent again where no answer is lost: the server may store both, and one on few cores
// that do other work answers late.
const rarely = patience / 3

// quickConfig is a configuration whose timeouts come soon.
func quickConfig() jetstream.Config {
	return jetstream.Config{
		Shards: 4, Streams: 2, BytesMax: 64 << 20,
		Heartbeat: 100 * time.Millisecond, RetryAfter: 200 * time.Millisecond,
	}
}

// tailLedger is what a tail got, checked against what was acknowledged.
type tailLedger struct {
	mu    sync.Mutex
	some  *sync.Cond
	last  map[mailbox.Address]uint64
	got   map[mailbox.Address][]string
	total int
	wrong []string
}

func newLedger() *tailLedger {
	l := &tailLedger{last: map[mailbox.Address]uint64{}, got: map[mailbox.Address][]string{}}
	l.some = sync.NewCond(&l.mu)
	return l
}

func (l *tailLedger) recordEntry(m mailbox.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.Place <= l.last[m.To] {
		l.wrong = append(l.wrong, fmt.Sprintf("%s: place %d after %d", m.To, m.Place, l.last[m.To]))
	}
	l.last[m.To] = m.Place
	l.got[m.To] = append(l.got[m.To], string(m.Data))
	l.total++
	l.some.Broadcast()
}

// awaitEntries waits until n entries have come.
func (l *tailLedger) awaitEntries(t *testing.T, n int) {
	t.Helper()
	late := time.AfterFunc(patience, l.some.Broadcast)
	defer late.Stop()
	until := time.Now().Add(patience)
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.total < n && time.Now().Before(until) {
		l.some.Wait()
	}
	if l.total < n {
		t.Fatalf("%d of %d entries", l.total, n)
	}
}

func openTail(t *testing.T, p *jetstream.Post) *tailLedger {
	t.Helper()
	l := newLedger()
	stop, err := p.Tail(t.Context(), l.recordEntry)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return l
}

// putEntry appends and waits.
func putEntry(t *testing.T, p *jetstream.Post, to mailbox.Address, data string) {
	t.Helper()
	if err := tryPut(t, p, t.Context(), to, data); err != nil {
		t.Fatal(err)
	}
}

func tryPut(t *testing.T, p *jetstream.Post, ctx context.Context, to mailbox.Address, data string) error {
	t.Helper()
	got := make(chan error, 1)
	p.Append(ctx, to, []byte(data), func(_ uint64, err error) { got <- err })
	select {
	case err := <-got:
		return err
	case <-time.After(patience):
		t.Fatal("append: no answer")
		return nil
	}
}

// storedEntries is what the logs hold, read from the store.
func storedEntries(t *testing.T, p *jetstream.Post, at mailbox.Address) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var all []string
	err := p.Read(ctx, at, 0, 0, func(m mailbox.Message) error {
		all = append(all, string(m.Data))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// finishLogs appends a last entry to every log and waits until the tail has them.
func (l *tailLedger) finishLogs(t *testing.T, p *jetstream.Post) {
	t.Helper()
	at, err := p.Addresses(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range at {
		putEntry(t, p, a, "last")
	}
	late := time.AfterFunc(patience, l.some.Broadcast)
	defer late.Stop()
	until := time.Now().Add(patience)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range at {
		for !slices.Contains(l.got[a], "last") && time.Now().Before(until) {
			l.some.Wait()
		}
	}
}

// appendMany appends entries to the logs of some agents and calls fault after each. When all are
// acknowledged, it compares the tail with the store.
func (l *tailLedger) appendMany(t *testing.T, p *jetstream.Post, entries, agents int, fault func(entry int)) {
	t.Helper()
	var acked sync.WaitGroup
	for i := range entries {
		acked.Add(1)
		p.Append(t.Context(), mailbox.At("run", fmt.Sprintf("a%d", i%agents)), fmt.Append(nil, i), func(_ uint64, err error) {
			if err != nil {
				t.Error(err)
			}
			acked.Done()
		})
		fault(i)
	}
	acked.Wait()
	l.finishLogs(t, p)
	l.compareStore(t, p)
}

// compareStore compares a tail from the beginning with the store.
func (l *tailLedger) compareStore(t *testing.T, p *jetstream.Post) {
	t.Helper()
	at, err := p.Addresses(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.wrong {
		t.Error(w)
	}
	for _, a := range at {
		got, want := l.got[a], storedEntries(t, p, a)
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || got[i] != want[i] {
				t.Errorf("%s: tail (%d) and store (%d) differ from entry %d on", a, len(got), len(want), i)
				break
			}
		}
	}
}

// serverAPI is the API of the server, for doing harm.
func serverAPI(t *testing.T, nc *nats.Conn) native.JetStream {
	t.Helper()
	js, err := native.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// deleteSome removes the consumers of a stream. There is none while its reader makes
// the next one.
func deleteSome(t *testing.T, js native.JetStream, stream string) {
	t.Helper()
	for late := time.Now().Add(patience); deleteConsumers(t, js, stream) == 0; <-time.After(pause) {
		if time.Now().After(late) {
			t.Fatalf("%s has no consumer to be deleted", stream)
		}
	}
}

// deleteConsumers removes all consumers of a stream and returns how many there were.
func deleteConsumers(t *testing.T, js native.JetStream, stream string) int {
	t.Helper()
	s, err := js.Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	names := s.ConsumerNames(t.Context())
	n := 0
	for name := range names.Name() {
		err := s.DeleteConsumer(t.Context(), name)
		if err == nil {
			n++
		} else if !errors.Is(err, native.ErrConsumerNotFound) {
			t.Fatal(err)
		}
	}
	if err := names.Err(); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestConsumerDeleted: a reader whose consumer is gone goes on where it was.
func TestConsumerDeleted(t *testing.T) {
	_, nc := serveTest(t)
	p := openPost(t, nc, quickConfig())
	js := serverAPI(t, nc)
	l := openTail(t, p)
	total := 0
	for round := range 4 {
		for i := range 50 {
			putEntry(t, p, mailbox.At("run", fmt.Sprintf("a%d", i%5)), fmt.Sprintf("%d.%d", round, i))
			total++
			if i == 25 {
				for n := range 2 {
					deleteSome(t, js, names.Names{}.BoxStream("default", n))
				}
			}
		}
		l.awaitEntries(t, total)
	}
	l.compareStore(t, p)
}

// TestConsumerDeletedUnderLoad deletes consumers while thousands of entries
// are on their way, so that gaps come at every place.
func TestConsumerDeletedUnderLoad(t *testing.T) {
	_, nc := serveTest(t)
	p := openPost(t, nc, quickConfig())
	js := serverAPI(t, nc)
	l := openTail(t, p)
	l.appendMany(t, p, 20_000, 13, func(i int) {
		if i%2000 == 1000 {
			deleteConsumers(t, js, names.Names{}.BoxStream("default", i/2000%2))
		}
	})
}

// TestLostRequestForAConsumerIsRepeated: a cluster that elects a leader answers no request. A reader asks again, for the same
// consumer, and does not wait for the end of its first request. It does not matter whether that one or its answer was lost.
func TestLostRequestForAConsumerIsRepeated(t *testing.T) {
	_, nc := serveTest(t)
	const relayed, create = "relay.", "CONSUMER.CREATE."
	var mu sync.Mutex
	asked := map[string]int{} // requests for a consumer
	_, err := nc.Subscribe(relayed+">", func(m *nats.Msg) {
		to := strings.TrimPrefix(m.Subject, relayed)
		pass := &nats.Msg{Subject: native.DefaultAPIPrefix + to, Reply: m.Reply, Data: m.Data, Header: m.Header}
		if strings.HasPrefix(to, create) {
			mu.Lock()
			asked[to]++
			again, first := asked[to] > 1, len(asked)%2 == 0
			mu.Unlock()
			switch {
			case !again && first:
				return // the request is lost
			case !again:
				pass.Reply = "lost" // the answer is lost
			}
		}
		if err := nc.PublishMsg(pass); err != nil && !errors.Is(err, nats.ErrConnectionClosed) { // the end of the test
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	cfg := quickConfig()
	cfg.APIPrefix = relayed
	p := openPost(t, nc, cfg)
	l := openTail(t, p)
	l.appendMany(t, p, 100, 5, func(int) {})
	mu.Lock()
	defer mu.Unlock()
	if len(asked) < 2 { // a reader for each of the two streams
		t.Errorf("%d consumers were asked for", len(asked))
	}
	for consumer, n := range asked {
		if n < 2 {
			t.Errorf("%s: asked once, and its reader attached with another name", consumer)
		}
	}
}

// TestReconnects: what was on its way to a reader when the connection broke
// comes again.
func TestReconnects(t *testing.T) {
	e, err := embedded.Start(embedded.Config{StateDir: t.TempDir(), Port: embedded.FreePort, Lazy: true})
	if err != nil {
		t.Fatal(err)
	}
	user, password := e.Credential(bus.RoleNode)
	cfg := quickConfig()
	cfg.Reader = connectRemote(t, e.URL(), nats.UserInfo(user, password))
	p := openPost(t, dialServer(t, e), cfg)
	l := openTail(t, p)
	l.appendMany(t, p, 10_000, 13, func(i int) {
		if i%1000 == 500 {
			if err := cfg.Reader.ForceReconnect(); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestServerRestarts: appends under way are answered, and the tail misses nothing.
func TestServerRestarts(t *testing.T) {
	dir := t.TempDir()
	first, err := embedded.Start(embedded.Config{StateDir: dir, Port: embedded.FreePort, Lazy: true})
	if err != nil {
		t.Fatal(err)
	}
	var current atomic.Pointer[embedded.Server]
	current.Store(first)
	nc := connectRemote(t, first.URL(), nats.UserInfoHandler(func() (string, string) {
		return current.Load().Credential(bus.RoleNode)
	}))
	p := openPost(t, nc, quickConfig())
	l := openTail(t, p)
	l.appendMany(t, p, 2000, 7, func(i int) {
		if i == 1000 {
			current.Store(restartServer(t, current.Load()))
		}
	})
	nc.Close()
	if err := current.Load().Close(); err != nil {
		t.Error(err)
	}
}

// restartServer stops a server and starts it again in its place.
func restartServer(t *testing.T, e *embedded.Server) *embedded.Server {
	t.Helper()
	var port int
	if _, err := fmt.Sscanf(e.URL(), "nats://127.0.0.1:%d", &port); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	for late := time.Now().Add(patience); ; <-time.After(pause) { // somebody may have got its port meanwhile, for a while
		again, err := embedded.Start(embedded.Config{StateDir: e.StateDir(), Port: port, Lazy: true})
		if err == nil {
			return again
		}
		if time.Now().After(late) {
			t.Fatal(err)
		}
	}
}

// connectRemote connects over TCP and keeps on trying.
func connectRemote(t *testing.T, url string, options ...nats.Option) *nats.Conn {
	t.Helper()
	ended := make(chan struct{})
	options = append(options, nats.ClosedHandler(func(*nats.Conn) { close(ended) }),
		nats.MaxReconnects(-1), nats.IgnoreAuthErrorAbort(), nats.ReconnectWait(20*time.Millisecond))
	nc, err := nats.Connect(url, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		nc.Close()
		<-ended
	})
	return nc
}

// TestAppendWaitsForAMissingStream: as long as there is no stream, an append waits; it is
// neither lost nor refused, and somebody is told, once each, that it waits and that
// it does no more.
//
//behaviour:shows F3
func TestAppendWaitsForAMissingStream(t *testing.T) {
	_, nc := serveTest(t)
	cfg := quickConfig()
	told := make(chan mailbox.Stall, 4)
	cfg.Stalled, cfg.StallAfter = func(s mailbox.Stall) { told <- s }, cfg.RetryAfter
	p := openPost(t, nc, cfg)
	js := serverAPI(t, nc)
	var configs []native.StreamConfig
	for n := range 2 {
		name := names.Names{}.BoxStream("default", n)
		s, err := js.Stream(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		configs = append(configs, s.CachedInfo().Config)
		if err := js.DeleteStream(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	answered := make(chan error, 1) // the oldest, which is the one that is told of
	p.Append(t.Context(), "run.a", []byte("kept"), func(_ uint64, err error) { answered <- err })
	ctx, cancel := context.WithCancel(t.Context())
	given := make(chan error, 1)
	p.Append(ctx, "run.b", []byte("given up"), func(_ uint64, err error) { given <- err })
	// A request that is answered after the appends were refused.
	if _, err := js.AccountInfo(t.Context()); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-given; !errors.Is(err, mailbox.ErrClosed) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	select {
	case err := <-answered:
		t.Fatalf("answered without a stream: %v", err)
	default:
	}
	if s := <-told; s.Since.IsZero() || s.Waiting == 0 || !strings.HasSuffix(s.Subject, "run.a") || s.Why == "" {
		t.Errorf("%+v", s)
	}
	for _, c := range configs {
		if _, err := js.CreateStream(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case err := <-answered:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("not sent again")
	}
	if s := <-told; !s.Since.IsZero() || len(told) > 0 {
		t.Errorf("%+v, and %d more", s, len(told))
	}
	if got := storedEntries(t, p, "run.a"); len(got) == 0 || got[0] != "kept" {
		t.Error(got)
	}
}

// TestABusyServerIsNoRefusal: a server whose stream has more under way than it
// takes refuses appends, and takes them later.
func TestABusyServerIsNoRefusal(t *testing.T) {
	t.Parallel()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true,
		JetStream: true, StoreDir: t.TempDir(), StreamMaxBufferedMsgs: 8})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server does not start")
	}
	p := openPost(t, connectRemote(t, s.ClientURL()), quickConfig())
	const many = 48 // six times as many; each refusal costs a retry after a pause
	var acked sync.WaitGroup
	for i := range many {
		acked.Add(1)
		p.Append(t.Context(), "run.a", fmt.Append(nil, i), func(_ uint64, err error) {
			if err != nil {
				t.Error(err)
			}
			acked.Done()
		})
	}
	acked.Wait()
	all := map[string]bool{}
	for _, data := range storedEntries(t, p, "run.a") {
		all[data] = true
	}
	if len(all) != many {
		t.Errorf("%d of %d are stored", len(all), many)
	}
}

func TestCloseWithAppendsUnderWay(t *testing.T) {
	_, nc := serveTest(t)
	p := openPost(t, nc, quickConfig())
	js := serverAPI(t, nc)
	for n := range 2 {
		if err := js.DeleteStream(t.Context(), names.Names{}.BoxStream("default", n)); err != nil {
			t.Fatal(err)
		}
	}
	const many = jetstream.InFlightMax + 500 // some in flight, some queued
	got := make(chan error, 2*many)
	for range many {
		p.Append(t.Context(), "run.a", []byte("x"), func(_ uint64, err error) { got <- err })
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	for range many {
		if err := <-got; !errors.Is(err, mailbox.ErrClosed) {
			t.Fatal(err)
		}
	}
	if len(got) > 0 {
		t.Error("done was called again")
	}
}

// TestRetriedAppendIsDoneOnceAndKeepsOrder: with acknowledgements that never come in time, done is called
// once, and the log holds at least one copy of each entry, in order of first.
func TestRetriedAppendIsDoneOnceAndKeepsOrder(t *testing.T) {
	_, nc := serveTest(t)
	cfg := quickConfig()
	cfg.RetryAfter = 10 * time.Microsecond
	p := openPost(t, nc, cfg)
	for i := range 200 {
		putEntry(t, p, "run.a", fmt.Sprint(i))
	}
	seen := map[string]bool{}
	next := 0
	for _, s := range storedEntries(t, p, "run.a") {
		if !seen[s] {
			if s != fmt.Sprint(next) {
				t.Fatalf("%s instead of %d", s, next)
			}
			seen[s] = true
			next++
		}
	}
	if next != 200 {
		t.Errorf("%d of 200", next)
	}
}

func TestFullStreamRefusesAppendsAndReportsAStall(t *testing.T) {
	_, nc := serveTest(t)
	cfg := quickConfig()
	cfg.BytesMax = 200_000
	told := make(chan mailbox.Stall, 4)
	cfg.Stalled, cfg.StallAfter = func(s mailbox.Stall) { told <- s }, 50*time.Millisecond
	cfg.RetryAfter = patience // no answer is late here
	p := openPost(t, nc, cfg)
	var err error
	for range 100 {
		if err = tryPut(t, p, t.Context(), "run.a", strings.Repeat("x", 10_000)); err != nil {
			break
		}
	}
	if !errors.Is(err, mailbox.ErrFull) {
		t.Fatal(err)
	}
	used, most, err := p.Room(t.Context())
	if err != nil || most != 100_000 || used < most*mailbox.RoomPercent/100 {
		t.Errorf("%d of %d, %v", used, most, err)
	}
	// As long as it goes on refusing somebody is told, once, that there is no room, and
	// then that there is.
	for len(told) == 0 {
		if err := tryPut(t, p, t.Context(), "run.a", strings.Repeat("x", 10_000)); !errors.Is(err, mailbox.ErrFull) {
			t.Fatal(err)
		}
	}
	if s := <-told; s.Since.IsZero() || !strings.HasSuffix(s.Subject, "run.a") || !strings.Contains(s.Why, "maximum bytes exceeded") {
		t.Errorf("%+v", s)
	}
	// What is there stays there: a full log refuses, it does not forget.
	if got := storedEntries(t, p, "run.a"); len(got) == 0 {
		t.Error("nothing left")
	}
	for len(told) == 0 {
		if err := p.Purge(t.Context(), "run.a", 0); err != nil {
			t.Fatal(err)
		}
		putEntry(t, p, "run.a", "again")
	}
	if s := <-told; !s.Since.IsZero() || len(told) > 0 {
		t.Errorf("%+v, and %d more", s, len(told))
	}
}
