package httpapi

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/troupe-run/troupe/client"
)

// limitedListener limits open connections, and separately those without a token yet (unproven). It closes the oldest of
// these for a newer one, so that a silent or slow client keeps nobody out. A flood can: it evicts a client that sends no
// request before unprovenMax newer connections.
type limitedListener struct {
	net.Listener
	slots       chan struct{} // one for each connection
	unprovenMax int
	closed      chan struct{}
	closeOnce   func()

	mu       sync.Mutex
	unproven *list.List // of *limitedConn, the oldest first
}

func newLimitedListener(l net.Listener, at limits) *limitedListener {
	closed := make(chan struct{})
	return &limitedListener{Listener: l, slots: make(chan struct{}, at.connections), unprovenMax: at.unproven, closed: closed,
		closeOnce: sync.OnceFunc(func() { close(closed) }), unproven: list.New()}
}

// Accept accepts a connection. One goroutine calls it.
func (l *limitedListener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.closeOldest(l.unprovenMax - 1)
	select {
	case l.slots <- struct{}{}:
		return l.add(accepted), nil
	default:
	}
	if n := l.countUnproven(); n > 0 {
		l.closeOldest(n - 1)
	}
	select {
	case l.slots <- struct{}{}:
		return l.add(accepted), nil
	case <-l.closed:
		_ = accepted.Close() // no request has arrived on it
		return nil, net.ErrClosed
	}
}

// Close ends Accept.
func (l *limitedListener) Close() error {
	l.closeOnce()
	return l.Listener.Close()
}

func (l *limitedListener) add(accepted net.Conn) *limitedConn {
	c := &limitedConn{Conn: accepted, listener: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	c.place = l.unproven.PushBack(c)
	return c
}

// remove takes a connection from the unproven ones.
func (l *limitedListener) remove(c *limitedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unproven.Remove(c.place) // no effect the second time
}

func (l *limitedListener) countUnproven() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unproven.Len()
}

// closeOldest closes unproven connections, the oldest first, until a number of them is left.
func (l *limitedListener) closeOldest(left int) {
	for {
		l.mu.Lock()
		oldest := l.unproven.Front()
		if oldest == nil || l.unproven.Len() <= left {
			l.mu.Unlock()
			return
		}
		c := l.unproven.Remove(oldest).(*limitedConn)
		l.mu.Unlock()
		_ = c.Close() // its client is told nothing: it has shown no token
	}
}

// limitedConn is a connection that has a slot of the listener and, after a request with a token, one of the share of those
// whose token its latest request had. Only servers with owners have shares.
type limitedConn struct {
	net.Conn
	listener *limitedListener
	place    *list.Element // among the unproven ones

	mu      sync.Mutex
	share   slotShare
	release func()
	closed  bool
}

// CloseWrite ends what the server sends. net/http does so before it closes a connection whose request has not arrived
// whole: a client that is still sending then reads why.
func (c *limitedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close closes the connection and releases its slots.
func (c *limitedConn) Close() error {
	err := c.Conn.Close()
	c.listener.remove(c)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		<-c.listener.slots
	}
	c.releaseShare()
	return err
}

// releaseShare releases the slot of a share. The caller holds the lock.
func (c *limitedConn) releaseShare() {
	if c.release != nil {
		c.release()
		c.release = nil
	}
}

// claimShare claims a slot of a share for the connection; false: the share has none left.
func (c *limitedConn) claimShare(share slotShare) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.release != nil && c.share == share {
		return true
	}
	release, ok := share.take()
	if !ok {
		return false
	}
	c.releaseShare()
	c.share, c.release = share, release
	return true
}

// connectionKey is the key of the connection of a request.
type connectionKey struct{}

func withConnection(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, c)
}

// countConnection serves requests with one token. It counts their connections for that token, and refuses a
// request whose connection finds no slot in the share of the token.
func countConnection(connections slotShare, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connectionKey{}).(*limitedConn); ok {
			if connections.own != nil && !c.claimShare(connections) {
				refuseErrorEarly(w, r, &client.Error{Code: client.CodeLimit, Text: "there are as many connections with this token as the server serves at once",
					Hint: "close idle connections and streams", Retry: 5 * time.Second})
				return
			}
			c.listener.remove(c)
		}
		markProven(r)
		next.ServeHTTP(w, r)
	})
}
