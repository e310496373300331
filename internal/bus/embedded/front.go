package embedded

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/troupe-run/troupe/internal/bus/names"
)

const (
	// PortConnsMax and SocketConnsMax are the most simultaneous connections of the port and of
	// the socket, authenticated or not; a low limit on open files reduces them. The node's own
	// connections use neither, so observers cannot exhaust them.
	PortConnsMax   = 1024
	SocketConnsMax = 1024
	// PortPendingMax is how many bytes may wait for one connection of the port before
	// it is closed. PortPendingSum bounds all of them together: beyond it the
	// connection for which the most waits is closed.
	PortPendingMax = 64 << 20
	PortPendingSum = 256 << 20

	// StalledMax is how long a connection of the port may take for writeMax bytes before it is closed.
	StalledMax = 10 * time.Second
	writeMax   = 64 << 10
	// relayGrace is how long the server's final bytes to a connection may take.
	relayGrace = 2 * time.Second
	// acceptPause is the pause after a failed accept: usually the cause is too many open
	// files.
	acceptPause = 50 * time.Millisecond
)

// errBusy is the message to a connection beyond the limit, in the NATS protocol.
const errBusy = "-ERR 'maximum connections exceeded'\r\n"

// proxyListener is a listener of the embedded server. The server itself does not listen: a front
// relays each connection to a connection inside the process. So observers have limits of their
// own, and a client of the port that reads too slowly stalls no publisher. Connections of the port
// receive events from the front's fan-out instead of the server.
type proxyListener struct {
	listener   net.Listener
	maxConns   int // connections
	maxPending int // bytes that may wait for one connection; 0: the server's limit alone
	fanOut     *eventFanOut
	ended      sync.WaitGroup
	names      names.Names // of the subjects on which an agent's program is marked

	mu      sync.Mutex
	closed  bool
	relays  map[*connRelay]struct{}
	waiting int // bytes that wait for all connections
}

func newProxyListener(l net.Listener, most, pending int, fanOut *eventFanOut) *proxyListener {
	return &proxyListener{listener: l, maxConns: most, maxPending: pending, fanOut: fanOut, relays: map[*connRelay]struct{}{}}
}

// acceptConns accepts connections, and relays each to a connection that inside makes.
func (f *proxyListener) acceptConns(inside func() (net.Conn, error)) {
	f.ended.Go(func() {
		for {
			conn, err := f.listener.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				<-time.After(acceptPause)
				continue
			}
			f.relayConn(conn, inside)
		}
	})
}

func (f *proxyListener) relayConn(conn net.Conn, inside func() (net.Conn, error)) {
	f.mu.Lock()
	full := len(f.relays) >= f.maxConns
	f.mu.Unlock()
	if full {
		_ = conn.SetWriteDeadline(time.Now().Add(relayGrace)) // a new connection has room for a line
		_, _ = io.WriteString(conn, errBusy)                  // the client need not read it
		_ = conn.Close()
		return
	}
	in, err := inside()
	if err != nil { // the server is shutting down
		_ = conn.Close()
		return
	}
	r := &connRelay{proxy: f, out: conn, in: in, more: make(chan struct{}, 1), closed: make(chan struct{})}
	f.mu.Lock()
	closed := f.closed
	if !closed {
		f.relays[r] = struct{}{}
	}
	f.mu.Unlock()
	if closed {
		r.close()
		return
	}
	f.ended.Go(r.run)
}

// closeListener closes the listener: no new connections.
func (f *proxyListener) closeListener() error {
	if err := f.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// closeRelays closes all connections, and waits until they have ended.
func (f *proxyListener) closeRelays() {
	f.mu.Lock()
	f.closed = true
	for r := range f.relays {
		r.close()
	}
	f.mu.Unlock()
	f.ended.Wait()
}

func (f *proxyListener) removeRelay(r *connRelay) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.relays, r)
	f.waiting -= r.waiting
	r.waiting = 0
}

// countPending counts bytes that wait for a connection, and reports whether they are within the limit.
func (f *proxyListener) countPending(r *connRelay, n int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	r.waiting += n
	f.waiting += n
	if r.waiting > f.maxPending {
		return false
	}
	if n > 0 && f.waiting > PortPendingSum {
		largest := r
		for other := range f.relays {
			if other.waiting > largest.waiting {
				largest = other
			}
		}
		largest.close()
	}
	return true
}
