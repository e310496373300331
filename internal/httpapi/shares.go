package httpapi

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/troupe-run/troupe/client"
)

// slotShare is what an owner, or the operators, may use of the slots of a server: half of all slots is divided among them, and
// the other half is for whoever comes first.
type slotShare struct{ own, common chan struct{} }

// newSlotShares divides slots into a number of shares, each with one slot at least.
func newSlotShares(slots, parts int) []slotShare {
	own := max(1, slots/2/parts)
	common, shares := make(chan struct{}, max(0, slots-own*parts)), make([]slotShare, parts)
	for i := range shares {
		shares[i] = slotShare{own: make(chan struct{}, own), common: common}
	}
	return shares
}

// take takes a slot, which release gives back. ok: there was one.
func (s slotShare) take() (release func(), ok bool) {
	select {
	case s.own <- struct{}{}:
		return func() { <-s.own }, true
	default:
	}
	select {
	case s.common <- struct{}{}:
		return func() { <-s.common }, true
	default:
		return nil, false
	}
}

// ownedConn is a connection that has a slot of the share of those whose token its latest request had. A connection without
// such a request has none.
type ownedConn struct {
	net.Conn
	mu      sync.Mutex
	share   slotShare
	release func()
	closed  bool
}

// ownedListener accepts connections that have slots of shares.
type ownedListener struct{ net.Listener }

func (l ownedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &ownedConn{Conn: c}, nil
}

// Close closes the connection and gives its slot back.
func (c *ownedConn) Close() error {
	err := c.Conn.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.giveBack()
	return err
}

// giveBack gives the slot back. The caller holds the lock.
func (c *ownedConn) giveBack() {
	if c.release != nil {
		c.release()
		c.release = nil
	}
}

// moveTo gives the connection a slot of a share; false: the share has none left.
func (c *ownedConn) moveTo(share slotShare) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.release != nil && c.share == share {
		return true
	}
	release, ok := share.take()
	if !ok {
		return false
	}
	c.giveBack()
	c.share, c.release = share, release
	return true
}

// connectionKey is the key of the connection of a request.
type connectionKey struct{}

func withConnection(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, c)
}

// countConnection refuses a request whose connection finds no slot in the share of its token, and closes the connection. A
// server without owners has no shares.
func countConnection(s *Server, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, ok := r.Context().Value(connectionKey{}).(*ownedConn)
		if ok && s.connections.own != nil && !c.moveTo(s.connections) {
			w.Header().Set("Connection", "close")
			refuseErrorEarly(w, r, &client.Error{Code: client.CodeLimit, Text: "there are as many connections with this token as the server serves at once",
				Hint: "close idle connections and streams", Retry: 5 * time.Second})
			return
		}
		next.ServeHTTP(w, r)
	})
}
