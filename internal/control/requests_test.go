package control

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/bustest"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/bus/names"
)

// TestAttackAHogDoesNotKeepOthersFromAnAnswer: 1,000 requests at once by one
// connection, to a verb that takes 50 ms; another one gets its answer within two
// seconds, and the hog's requests end as answers or as refusals that say when to
// come again.
func TestAttackAHogDoesNotKeepOthersFromAnAnswer(t *testing.T) {
	bustest.Bubble(t, aHogDoesNotKeepOthersFromAnAnswer)
}

func aHogDoesNotKeepOthersFromAnAnswer(t *testing.T) {
	const requests, bound = 1000, 2 * time.Second
	e := startEmbedded(t)
	slow := func() client.NodeInfo {
		<-time.After(50 * time.Millisecond) // of the bubble
		return client.NodeInfo{}
	}
	c, err := Serve(Config{Conn: dialRole(t, e, bus.RoleService), Names: names.Names{}, Name: "one", Machine: "m", NoActors: true, Self: slow})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	hog, inbox := dialRole(t, e, bus.RoleClient), ""
	inbox = hog.NewInbox()
	answers, err := hog.SubscribeSync(inbox)
	if err != nil {
		t.Fatal(err)
	}
	for range requests {
		if err := hog.PublishRequest("troupe.cmd.nodes", inbox, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := hog.Flush(); err != nil {
		t.Fatal(err)
	}
	asks := client.New(dialRole(t, e, bus.RoleClient), names.Names{})
	for range 3 {
		began := time.Now()
		if _, err := asks.Nodes(t.Context()); err != nil || time.Since(began) > bound {
			t.Errorf("beside a hog: %v after %v", err, time.Since(began))
		}
	}
	for i := range requests {
		m, err := answers.NextMsg(time.Minute)
		if err != nil {
			t.Fatalf("%d of %d requests have no answer: %v", requests-i, requests, err)
		}
		if m.Header.Get("Nats-Service-Error-Code") != "" && m.Header.Get(client.RetryHeader) == "" {
			t.Fatalf("a refusal does not say when to come again: %v", m.Header)
		}
	}
}

// TestABusyNodeIsAskedAgain: a client that is refused for its number of requests
// comes again, and many at once all get their answer.
func TestABusyNodeIsAskedAgain(t *testing.T) {
	e := startEmbedded(t)
	nc := dialRole(t, e, bus.RoleService)
	calls := 0
	_, err := nc.Subscribe("troupe.cmd.list", func(m *nats.Msg) {
		calls++
		answer := &nats.Msg{Subject: m.Reply, Data: []byte("[]")}
		if calls < 3 {
			answer = &nats.Msg{Subject: m.Reply, Header: nats.Header{"Nats-Service-Error-Code": {"429"}, client.RetryHeader: {"10"}}}
		}
		if err := nc.PublishMsg(answer); err != nil {
			t.Error(err)
		}
	})
	if err != nil || nc.Flush() != nil {
		t.Fatal(err)
	}
	asks := client.New(dialRole(t, e, bus.RoleClient), names.Names{})
	if _, err := asks.List(t.Context()); err != nil || calls != 3 {
		t.Errorf("after %d calls: %v", calls, err)
	}
	var refused *client.Error
	if full := error(&client.Error{Code: client.CodeLimit}); client.Busy(full) || !errors.As(full, &refused) {
		t.Error("logs that are full are not busy")
	}
}

// TestAttackInventedInboxesTakeNoTurns: with --open-control, a connection without a
// credential invents inboxes, its own and those of others. The server names where its
// replies go, so it has one share, and a client gets a reply immediately.
func TestAttackInventedInboxesTakeNoTurns(t *testing.T) {
	e := embeddedAs(t, embedded.Config{Port: embedded.FreePort, OpenControl: true})
	full, done := make(chan struct{}, 20*client.RequestsAtOnce), make(chan struct{})
	slow := func() client.NodeInfo {
		select {
		case full <- struct{}{}:
		case <-done:
		}
		<-done
		return client.NodeInfo{}
	}
	c, err := Serve(Config{Conn: dialRole(t, e, bus.RoleService), Names: names.Names{}, Name: "one", Machine: "m", NoActors: true, Self: slow})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	hog, err := bus.Connect(bus.Options{Servers: e.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hog.Close)
	for i := range 8 * client.RequestsAtOnce {
		for _, inbox := range []string{"_INBOX_client_x%d.a.1", "_INBOX_client.x%d.1", "_INBOX.x%d.1"} {
			if err := hog.PublishRequest("troupe.cmd.nodes", fmt.Sprintf(inbox, i), nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := hog.Flush(); err != nil {
		t.Fatal(err)
	}
	for range client.RequestsAtOnce {
		<-full
	}
	asked := make(chan error, 1)
	go func() {
		_, err := client.New(dialRole(t, e, bus.RoleClient), names.Names{}).Nodes(t.Context())
		asked <- err
	}()
	<-full // the client's, or one more of the hog
	if n := len(full); n > 0 {
		t.Errorf("the hog has %d and more requests under way, want %d", client.RequestsAtOnce+n, client.RequestsAtOnce)
	}
	close(done)
	if err := <-asked; err != nil {
		t.Error(err)
	}
}
