package embedded

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
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

	relayChunk = 32 << 10
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
// own, and a client of the port that reads too slowly stalls no publisher.
type proxyListener struct {
	listener   net.Listener
	maxConns   int // connections
	maxPending int // bytes that may wait for one connection; 0: the server's limit alone
	ended      sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	relays  map[*connRelay]struct{}
	waiting int // bytes that wait for all connections
}

func newProxyListener(l net.Listener, most, pending int) *proxyListener {
	return &proxyListener{listener: l, maxConns: most, maxPending: pending, relays: map[*connRelay]struct{}{}}
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
	r := &connRelay{proxy: f, out: conn, in: in, more: make(chan struct{}, 1)}
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

// connRelay carries the bytes of one connection between outside and the server.
type connRelay struct {
	proxy   *proxyListener
	out, in net.Conn
	waiting int // of front

	more   chan struct{} // signals that buffer has data, or that the relay is over
	mu     sync.Mutex
	buffer []byte // from the server, in order
	over   bool   // the server sends no more
}

// close ends a relay from either side.
func (r *connRelay) close() {
	_ = r.out.Close() // undelivered bytes are discarded
	_ = r.in.Close()  // a pipe in memory: it cannot fail
}

func (r *connRelay) run() {
	defer r.proxy.removeRelay(r)
	var sides sync.WaitGroup
	sides.Go(func() {
		_, _ = io.Copy(r.in, r.out) // either side may end at any time
		_ = r.in.Close()            // as above
	})
	if r.proxy.maxPending > 0 {
		sides.Go(r.drainBuffer)
		r.fillBuffer()
	} else {
		_, _ = io.Copy(r.out, r.in) // either side may end at any time
		r.close()
	}
	sides.Wait()
}

// fillBuffer buffers what the server sends at once, up to the limit.
func (r *connRelay) fillBuffer() {
	chunk := make([]byte, relayChunk)
	for {
		n, err := r.in.Read(chunk)
		if n > 0 && !r.proxy.countPending(r, n) {
			r.close()
			err = net.ErrClosed
		}
		r.mu.Lock()
		r.buffer = append(r.buffer, chunk[:n]...)
		r.over = err != nil
		r.mu.Unlock()
		select {
		case r.more <- struct{}{}:
		default:
		}
		if err != nil {
			_ = r.out.SetWriteDeadline(time.Now().Add(relayGrace)) // fails only on a closed connection
			return
		}
	}
}

// drainBuffer forwards what read has buffered. It ends with the server's side, and then closes the
// connection.
func (r *connRelay) drainBuffer() {
	defer r.close()
	var free []byte
	for range r.more {
		r.mu.Lock()
		full, over := r.buffer, r.over
		r.buffer = free[:0]
		r.mu.Unlock()
		_, err := r.out.Write(full)
		r.proxy.countPending(r, -len(full))
		if over || err != nil {
			return
		}
		if free = full; cap(free) > PayloadMax { // the buffer of a burst is not kept
			free = nil
		}
	}
}
