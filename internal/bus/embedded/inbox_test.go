package embedded_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/bustest"
	"github.com/troupe-run/troupe/internal/bus/embedded"
)

// inboxRandom is what of an inbox an attacker must guess: 128 bits in base 32.
const inboxRandom = 26

// TestAttackInboxesCannotBeGuessed: the ids of the client library (nuid) of one
// process share a prefix and count in fixed steps, and each service tells one of
// them to whoever asks $SRV.PING. No inbox hangs on them alone.
func TestAttackInboxesCannotBeGuessed(t *testing.T) {
	e := startServer(t, embedded.Config{})
	url := bustest.PlainServer(t, &server.Options{})
	for _, row := range []struct {
		name, prefix string
		dial         func() *nats.Conn
	}{
		{"embedded node", "_INBOX_node", func() *nats.Conn { return connectAs(t, e, bus.RoleNode) }},
		{"embedded service", "_INBOX_service", func() *nats.Conn { return connectAs(t, e, bus.RoleService) }},
		{"embedded client", "_INBOX_client", func() *nats.Conn { return connectAs(t, e, bus.RoleClient) }},
		{"embedded observer", "_INBOX", func() *nats.Conn { return connectAs(t, e, bus.RoleObserver) }},
		{"server elsewhere", "_INBOX", func() *nats.Conn { return mustConnect(t, bus.Options{Servers: url}) }},
		{"server elsewhere, a prefix", "_INBOX_x", func() *nats.Conn { return mustConnect(t, bus.Options{Servers: url, InboxPrefix: "_INBOX_x"}) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			seen := map[string]bool{}
			for range 3 {
				nc := row.dial()
				rest, ours := strings.CutPrefix(nc.NewInbox(), row.prefix+".")
				secret, _, more := strings.Cut(rest, ".")
				if !ours || !more || len(secret) != inboxRandom || seen[secret] {
					t.Errorf("inbox %q: want %s.<%d random characters>.<id>", nc.NewInbox(), row.prefix, inboxRandom)
				}
				seen[secret] = true
			}
		})
	}
}

// TestAttackServiceCannotAnswerToNodes: the permissions of the connection that
// answers requests, should its own check fail: a request names the subject of
// its answer.
func TestAttackServiceCannotAnswerToNodes(t *testing.T) {
	e := startServer(t, embedded.Config{})
	node, heard := connectAs(t, e, bus.RoleNode), make(chan string, 16)
	if _, err := node.Subscribe(">", func(m *nats.Msg) { heard <- m.Subject }); err != nil {
		t.Fatal(err)
	}
	if err := node.Flush(); err != nil {
		t.Fatal(err)
	}
	service := connectAs(t, e, bus.RoleService, make(violations, 16).errorHandler())
	for _, subject := range []string{node.NewInbox(), "_INBOX_node.x", "_INBOX_service.x", "_INBOX_setup.x", "_INBOX_system.x", "$JS.API.INFO",
		"$KV.troupe_shards.default.0", "$O.troupe_blobs.M.x", "troupe.box.default.0.run.root", "troupe.evt.run.root.turn.started", "troupe.cmd.cancel"} {
		if err := service.Publish(subject, []byte(`{"stream":"TROUPE_BOX_DEFAULT_0","seq":7}`)); err != nil {
			t.Fatal(err)
		}
	}
	if err := service.Publish("_INBOX_client.x", nil); err != nil {
		t.Fatal(err)
	}
	if err := service.Flush(); err != nil {
		t.Fatal(err)
	}
	for {
		select {
		case got := <-heard:
			if got == "_INBOX_client.x" {
				return // sent last
			}
			t.Errorf("the service published to %s", got)
		case <-time.After(patience):
			t.Fatal("the service cannot answer a client")
		}
	}
}

func TestAnswerSubjectsOfClients(t *testing.T) {
	for subject, want := range map[string]bool{
		"_INBOX.x": true, "_INBOX.x.y.z": true, "_INBOX_client.x.y": true, "_INBOX_client_alice.x": true, "_R_.abc.1": true,
		"": false, "_INBOX": false, "_INBOX.": false, "_INBOX..x": false, "_INBOX.*": false, "_INBOX.>": false, "_INBOX.x y": false, "_INBOX.x\r\nPUB a 0": false,
		"_INBOX_node.x": false, "_INBOX_node_2.x": false, "_INBOX_service.x": false, "_INBOX_setup.x": false, "_INBOX_system.x": false, "_INBOXnode.x": false,
		"_INBOX_clients.x": false, "$JS.API.INFO": false, "$KV.troupe_shards.x": false, "troupe.box.default.0.r.root": false, "troupe.evt.r.a.b.c": false,
		"troupe.cmd.run": false, "agents.hb.x": false, "$JS.ACK.a.b.1.1.1.1.0": false, "other": false, "_inbox.x": false,
		"_INBOX." + strings.Repeat("x", 1000): false,
	} {
		if got := bus.CanAnswer(subject); got != want {
			t.Errorf("Answerable(%.60q) = %t", subject, got)
		}
	}
}

func TestCheckAck(t *testing.T) {
	for _, row := range []struct {
		ack  *jetstream.PubAck
		want bool
	}{
		{&jetstream.PubAck{Stream: "KV_b", Sequence: 8}, true},
		{&jetstream.PubAck{Stream: "KV_b", Sequence: 7}, false},
		{&jetstream.PubAck{Stream: "KV_b", Sequence: 9, Duplicate: true}, false},
		{&jetstream.PubAck{Stream: "KV_c", Sequence: 9}, false},
		{&jetstream.PubAck{Sequence: 9}, false},
		{nil, false},
	} {
		if err := bus.CheckAck(row.ack, "KV_b", 7); (err == nil) != row.want || err != nil && !errors.Is(err, bus.ErrAck) {
			t.Errorf("%+v: %v", row.ack, err)
		}
	}
}
