package client_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/bustest"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/bus/names"
)

// A client sends at most as many requests of one verb at once as a node serves of one connection;
// the others are sent in their turn. Requests of another verb do not wait for them.
func TestRequestsOfAVerbTakeTurns(t *testing.T) { bustest.Bubble(t, requestsOfAVerbTakeTurns) }

func requestsOfAVerbTakeTurns(t *testing.T) {
	const requests, atOnce = 200, 32
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
	held := make(chan *nats.Msg, requests)
	subscribe(t, nc, "list", func(m *nats.Msg) { held <- m })
	subscribe(t, nc, "nodes", func(m *nats.Msg) {
		if err := m.Respond([]byte(`[]`)); err != nil {
			t.Error(err)
		}
	})
	c := client.New(nc, names.Names{})
	var all sync.WaitGroup
	for range requests {
		all.Go(func() {
			if _, err := c.List(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	first := make([]*nats.Msg, 0, atOnce)
	for range atOnce {
		first = append(first, <-held)
	}
	if _, err := c.Nodes(t.Context()); err != nil {
		t.Errorf("a request of another verb: %v", err)
	}
	if n := len(held); n > 0 {
		t.Errorf("%d requests at once, want %d", atOnce+n, atOnce)
	}
	for i := range requests {
		var m *nats.Msg
		if i < len(first) {
			m = first[i]
		} else {
			m = <-held
		}
		if err := m.Respond([]byte(`[]`)); err != nil {
			t.Error(err)
		}
	}
	all.Wait()
}

// No node answers: the requests that wait for their turn meanwhile get that as their error, and not
// that the program has too many.
func TestRequestsThatWaitDuringAnOutageAreToldOfIt(t *testing.T) {
	bustest.Bubble(t, requestsThatWaitDuringAnOutageAreToldOfIt)
}

func requestsThatWaitDuringAnOutageAreToldOfIt(t *testing.T) {
	const requests = 200
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
	subscribe(t, nc, "list", func(*nats.Msg) {})
	c := client.New(nc, names.Names{})
	var all sync.WaitGroup
	for range requests {
		all.Go(func() {
			if _, err := c.List(t.Context()); !errors.Is(err, client.ErrUnavailable) {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func subscribe(t *testing.T, nc *nats.Conn, verb string, serve func(*nats.Msg)) {
	t.Helper()
	subject, err := names.Names{}.CommandSubject(verb)
	if err == nil {
		_, err = nc.Subscribe(subject, serve)
	}
	if err != nil {
		t.Fatal(err)
	}
}
