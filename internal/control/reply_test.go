package control

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/names"
)

// TestAttackAnswersGoToClientsOnly: a request names where its answer goes. The code
// refuses all but inboxes of clients and observers, here on a connection that may
// publish everywhere, as on a server without roles.
func TestAttackAnswersGoToClientsOnly(t *testing.T) {
	e := startEmbedded(t)
	node := dialRole(t, e, bus.RoleNode)
	c, err := Serve(Config{Conn: dialRole(t, e, bus.RoleNode), Names: names.Names{}, Name: "one", Machine: "m", NoActors: true, Self: func() client.NodeInfo { return client.NodeInfo{} }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	last := "_INBOX_client.last"
	heard := make(chan string, 64)
	hostile := []string{node.NewInbox(), "_INBOX_node.x.y", "_INBOX_service.x", "_INBOX_setup.x", "_INBOX_system.x", "_INBOX_clientnode.x", "_inbox.x",
		"$JS.API.STREAM.DELETE.X", "$JS.FC.x", "$KV.troupe_shards.default.0", "$O.troupe_blobs.M.x", "$SYS.REQ.x", "$SRV.PING",
		"troupe.box.default.0.run.root", "troupe.evt.run.root.turn.started", "troupe.cmd.cancel", "agents.hb.troupe.o.n", "other.x"}
	for _, subject := range append(hostile, last) {
		if _, err := node.Subscribe(subject, func(m *nats.Msg) {
			if string(m.Data) != ask { // else it is the question, by a verb's own subject
				heard <- subject
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, verb := range []string{"nodes", "events", "get"} { // an answer and two refusals
		for _, subject := range append(hostile, last) {
			if err := node.PublishRequest("troupe.cmd."+verb, subject, []byte(ask)); err != nil {
				t.Fatal(err)
			}
		}
		expectReply(t, heard, last)
	}
}

// expectReply waits for the reply to the last request.
func expectReply(t *testing.T, heard chan string, last string) {
	t.Helper()
	for got := ""; got != last; {
		select {
		case got = <-heard:
			if got != last {
				t.Errorf("a node answered into %s", got)
			}
		case <-time.After(time.Minute):
			t.Fatal("a client got no answer")
		}
	}
}

const ask = `{}`
