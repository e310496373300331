package client_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/bustest"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/bus/names"
)

// TestARequestIsSentAgainUntilANodeAnswers: it goes to one of the nodes, and one
// that is frozen takes it and says nothing, more than once.
func TestARequestIsSentAgainUntilANodeAnswers(t *testing.T) {
	bustest.Bubble(t, aRequestIsSentAgainUntilANodeAnswers)
}

func aRequestIsSentAgainUntilANodeAnswers(t *testing.T) {
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
	names, err := names.NewNames("")
	if err != nil {
		t.Fatal(err)
	}
	subject, err := names.CommandSubject("list")
	if err != nil {
		t.Fatal(err)
	}
	var times atomic.Int32
	_, err = nc.Subscribe(subject, func(m *nats.Msg) {
		if times.Add(1) < 3 {
			return
		}
		if err := m.Respond([]byte(`[{"run_id":"r1"}]`)); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.New(nc, names).List(t.Context())
	if err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
}

// TestObserverThatSendsARequestIsRefused: the server tells the connection, after the fact;
// whoever asked must not wait for an answer that cannot come.
func TestObserverThatSendsARequestIsRefused(t *testing.T) {
	bustest.Bubble(t, observerThatSendsARequestIsRefused)
}

func observerThatSendsARequestIsRefused(t *testing.T) {
	e, err := embedded.Start(embedded.Config{StateDir: t.TempDir(), DontListen: true, Lazy: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	nc, err := e.Connect(bus.RoleObserver, nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	names, err := names.NewNames("")
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.New(nc, names).Run(t.Context(), client.RunRequest{Prompt: "hello", Dir: t.TempDir()})
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Code != client.CodeForbidden || refused.Hint == "" {
		t.Errorf("an observer that starts a run: %v", err)
	}
}
