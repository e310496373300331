package client_test

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/bus/names"
)

// startServer starts a NATS server, and connects to it as a node does.
func startServer(t *testing.T) *nats.Conn {
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
	nc, err := e.Connect(bus.RoleNode)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// A whole id is that run, although others begin with it, and although the node cannot read its logs.
func TestFindRunPrefersAWholeID(t *testing.T) {
	nc := startServer(t)
	subscribe(t, nc, "list", func(m *nats.Msg) {
		if err := m.Respond([]byte(`[{"run_id":"fk3"},{"run_id":"fk"},{"run_id":"fk2"}]`)); err != nil {
			t.Error(err)
		}
	})
	subscribe(t, nc, "get", func(m *nats.Msg) {
		answer := nats.NewMsg(m.Reply)
		answer.Header.Set(micro.ErrorCodeHeader, client.CodeConflict)
		if err := m.RespondMsg(answer); err != nil {
			t.Error(err)
		}
	})
	c := client.New(nc, names.Names{})
	if id, err := c.FindRun(t.Context(), "fk"); id != "fk" || err != nil {
		t.Errorf("%q, %v", id, err)
	}
	if id, err := c.FindRun(t.Context(), "f"); !errors.Is(err, client.ErrAmbiguous) {
		t.Errorf("%q, %v", id, err)
	}
}
