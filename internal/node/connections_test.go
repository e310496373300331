package node

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/internal/bus/embedded"
)

// loseConnection has the server close a connection of a node for good, by a line that is too long for it.
func loseConnection(t *testing.T, nc *nats.Conn, lost <-chan error) {
	t.Helper()
	if err := nc.Publish(strings.Repeat("A", embedded.ControlLineMax+1), nil); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-lost:
		if !errors.Is(err, ErrConnectionClosed) || !strings.Contains(strings.ToLower(err.Error()), "maximum control line") {
			t.Error(err)
		}
	case <-testContext(t).Done():
		t.Fatal("the node does not notice that it has lost a connection")
	}
}

// TestAttackANodeThatHasLostAConnectionSaysSo: the server has closed a connection for good, and nothing opens it again. The
// node is not alive any more, whichever connection that is, and accepts no run.
func TestAttackANodeThatHasLostAConnectionSaysSo(t *testing.T) {
	t.Parallel()
	for what, pick := range map[string]func(*Node) *nats.Conn{
		"logs":   func(h *Node) *nats.Conn { return h.logConn },
		"events": func(h *Node) *nats.Conn { return h.eventConn },
	} {
		t.Run(what, func(t *testing.T) {
			lost := make(chan error, 4)
			h, w := startWeb(t, func(c *Config) { c.OnConnectionLost = func(err error) { lost <- err } })
			w.get("/healthz", http.StatusOK, nil)
			loseConnection(t, pick(h), lost)
			w.get("/healthz", http.StatusServiceUnavailable, nil)
			w.get("/readyz", http.StatusServiceUnavailable, nil)
			reply, err := w.http.Do(w.request("POST", "/api/v1/runs", `{"prompt":"hello"}`))
			if err != nil {
				t.Fatal(err)
			}
			if err := reply.Body.Close(); err != nil || reply.StatusCode < http.StatusInternalServerError {
				t.Errorf("a run is answered %s, %v", reply.Status, err)
			}
			if err := h.Close(); err != nil {
				t.Log(err)
			}
			if len(lost) != 0 {
				t.Errorf("a connection that the node closes is lost: %v", <-lost)
			}
		})
	}
}

// TestAttackADrainLosesNoConnection: the name in a drain is no key, and so no line, without a limit.
func TestAttackADrainLosesNoConnection(t *testing.T) {
	t.Parallel()
	one, _, w := startClusterWeb(t)
	for _, body := range []string{`{}`, `{"undo":true}`} {
		reply, err := w.http.Do(w.request("POST", "/api/v1/nodes/"+strings.Repeat("A", 2*embedded.ControlLineMax)+"/drain", body))
		if err != nil {
			t.Fatal(err)
		}
		if err := reply.Body.Close(); err != nil || reply.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %s, %v", body, reply.Status, err)
		}
	}
	w.get("/healthz", http.StatusOK, nil)
	if err := one.checkReady(); err != nil {
		t.Error(err)
	}
}

// TestAClusterNodeThatHasLostAConnectionCloses: the other node takes its shards.
func TestAClusterNodeThatHasLostAConnectionCloses(t *testing.T) {
	t.Parallel()
	e := startSharedServer(t)
	lost := make(chan error, 4)
	one := joinAs(t, e, "one", func(c *Config) { c.OnConnectionLost = func(err error) { lost <- err } })
	two := joinAs(t, e, "two", func(*Config) {})
	waitForSpread(t, one, two)
	loseConnection(t, one.logConn, lost)
	if err := one.Close(); err != nil {
		t.Log(err) // what it says of the connection
	}
	waitForSpread(t, two)
}
