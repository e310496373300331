package bus_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/bustest"
)

// TestTransientErrorsMayBeRetried: a stream without a leader, a server that starts and a
// connection that is away pass; what was refused stays refused.
func TestTransientErrorsMayBeRetried(t *testing.T) {
	for _, row := range []struct {
		err  error
		pass bool
	}{
		{&jetstream.APIError{Code: 503, ErrorCode: 10008, Description: "JetStream system temporarily unavailable"}, true},
		{&jetstream.APIError{Code: 500, ErrorCode: 10009}, true},
		{&jetstream.APIError{Code: 500, ErrorCode: 10118}, true},
		{&jetstream.APIError{Code: 503, ErrorCode: 10163}, true},
		{nats.ErrNoResponders, true},
		{nats.ErrTimeout, true},
		{context.DeadlineExceeded, true},
		{jetstream.ErrNoStreamResponse, true},
		{nats.ErrConnectionReconnecting, true},
		{&jetstream.APIError{Code: 503, ErrorCode: 10023, Description: "insufficient resources"}, false},
		{&jetstream.APIError{Code: 404, ErrorCode: 10059}, false},
		{nats.ErrPermissionViolation, false},
		{context.Canceled, false},
		{errors.New("anything"), false},
	} {
		if got := bus.IsUnavailable(fmt.Errorf("read: %w", row.err)); got != row.pass {
			t.Errorf("%v: %t", row.err, got)
		}
	}
}

// TestAConflictHasTwoCodes: replicated streams answer 10164 where others answer
// 10071, and mean no more by it.
func TestAConflictHasTwoCodes(t *testing.T) {
	for _, row := range []struct {
		err      error
		conflict bool
	}{
		{&jetstream.APIError{Code: 400, ErrorCode: 10071}, true},
		{&jetstream.APIError{Code: 400, ErrorCode: 10164}, true},
		{jetstream.ErrKeyExists, true},
		{bus.ErrRevision, true},
		{&jetstream.APIError{Code: 503, ErrorCode: 10008}, false},
		{nats.ErrTimeout, false},
	} {
		if got := bus.IsConflict(fmt.Errorf("write: %w", row.err)); got != row.conflict {
			t.Errorf("%v: %t", row.err, got)
		}
	}
}

// blackholeProxy stands before a server until it swallows all that is sent.
type blackholeProxy struct {
	net.Listener
	target   string
	mu       sync.Mutex
	dropping bool
	conns    []net.Conn
	wait     sync.WaitGroup
}

func startBlackholeProxy(t *testing.T, url string) *blackholeProxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &blackholeProxy{Listener: l, target: strings.TrimPrefix(url, "nats://")}
	h.wait.Go(func() {
		for {
			near, err := h.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", h.target)
			if err != nil {
				_ = near.Close() // as if nobody listened
				continue
			}
			h.mu.Lock()
			h.conns = append(h.conns, near, far)
			h.mu.Unlock()
			h.wait.Go(func() { h.forwardBytes(near, far) })
			h.wait.Go(func() { h.forwardBytes(far, near) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close() // ends the loop
		h.mu.Lock()
		for _, c := range h.conns {
			_ = c.Close()
		}
		h.mu.Unlock()
		h.wait.Wait()
	})
	return h
}

func (h *blackholeProxy) forwardBytes(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		h.mu.Lock()
		over := h.dropping
		h.mu.Unlock()
		if over {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func (h *blackholeProxy) dropTraffic() {
	h.mu.Lock()
	h.dropping = true
	h.mu.Unlock()
}

// TestAServerThatFellSilentIsLeft: no connection is closed and no error comes, as
// when a network drops packets; the next server is found all the same, and by
// default before leases of 20 s end.
func TestAServerThatFellSilentIsLeft(t *testing.T) {
	first, second := bustest.PlainServer(t, &server.Options{}), bustest.PlainServer(t, &server.Options{})
	h := startBlackholeProxy(t, first)
	left := make(chan string, 4)
	usual := 0 * time.Second
	nc, err := bus.Connect(bus.Options{Servers: "nats://" + h.Addr().String() + "," + second, Extra: []nats.Option{
		func(o *nats.Options) error {
			usual = o.PingInterval * time.Duration(o.MaxPingsOut+1)
			o.PingInterval = 50 * time.Millisecond
			return nil
		},
		nats.DontRandomize(),
		nats.ReconnectHandler(func(nc *nats.Conn) { left <- nc.ConnectedUrl() }),
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if usual > 20*time.Second {
		t.Errorf("a silent server is left after %v", usual)
	}
	h.dropTraffic()
	select {
	case url := <-left:
		if url != second {
			t.Errorf("found %s", url)
		}
	case <-time.After(60 * time.Second):
		t.Fatal("the silent server was not left")
	}
}
