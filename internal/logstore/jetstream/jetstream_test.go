package jetstream_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/logstore/jetstream"
	"github.com/troupe-run/troupe/internal/test/boxtest"
	"github.com/troupe-run/troupe/internal/test/leaks"
	"github.com/troupe-run/troupe/mailbox"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// serveTest starts a server of its own for a test; lazy, because no test here cuts
// the power.
func serveTest(t testing.TB) (*embedded.Server, *nats.Conn) {
	t.Helper()
	e, err := embedded.Start(embedded.Config{StateDir: t.TempDir(), DontListen: true, Lazy: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e, dialServer(t, e)
}

func dialServer(t testing.TB, e *embedded.Server, options ...nats.Option) *nats.Conn {
	t.Helper()
	ended := make(chan struct{})
	options = append(options, nats.ClosedHandler(func(*nats.Conn) { close(ended) }))
	nc, err := e.Connect(bus.RoleNode, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		nc.Close()
		<-ended
	})
	return nc
}

func openPost(t testing.TB, nc *nats.Conn, cfg jetstream.Config) *jetstream.Post {
	t.Helper()
	p, err := jetstream.Open(t.Context(), nc, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func TestPost(t *testing.T) {
	_, nc := serveTest(t)
	var pools atomic.Int64
	boxtest.Run(t, func(t *testing.T) mailbox.Post {
		pool := fmt.Sprintf("p%d", pools.Add(1))
		return openPost(t, nc, jetstream.Config{Pool: pool, BytesMax: 256 << 20, RetryAfter: rarely})
	})
}
