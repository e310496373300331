package agentprotocol

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/names"
)

// connectServer connects to a server that passes on large messages.
func connectServer(t *testing.T) *nats.Conn {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, MaxPayload: 8 << 20, MaxPending: 64 << 20, NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server is not ready")
	}
	nc, err := nats.Connect(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// An agent declares its own limit where the server passes on more, and enforces it. Without a node that takes runs, a
// prompt is answered with an error.
func TestLimitsOnAnyServer(t *testing.T) {
	nc := connectServer(t)
	many := []Agent{{Name: "helper", Description: "Helps.\nA lot."}, {Name: "Not A Token"}}
	for range agentsMax {
		many = append(many, Agent{Name: "a" + strings.ToLower(nats.NewInbox()[7:20])})
	}
	h, err := Serve(Config{Conn: nc, Client: client.New(nc, names.Names{}), Agents: many, Owner: "ops", Machine: "m", Version: "1.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}()
	if n := len(h.Subjects()); n != agentsMax || h.Subjects()[0] != "agents.prompt.troupe.ops.helper" {
		t.Errorf("%d agents are exported: %q", n, h.Subjects()[0])
	}
	if i := h.agents[0].service.Info(); i.Description != "Helps. A lot." || i.Endpoints[0].Metadata["max_payload"] != "4MB" && i.Endpoints[1].Metadata["max_payload"] != "4MB" {
		t.Errorf("%+v", i)
	}
	for payload, want := range map[string]string{strings.Repeat("x", payloadBytesMax+1): "400", "hello": "500"} {
		sub, err := nc.SubscribeSync(nats.NewInbox())
		if err == nil {
			err = nc.PublishRequest(h.Subjects()[0], sub.Subject, []byte(payload))
		}
		if err != nil {
			t.Fatal(err)
		}
		code := ""
		for {
			m, err := sub.NextMsg(time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			if len(m.Data) == 0 && len(m.Header) == 0 {
				break
			}
			code += m.Header.Get("Nats-Service-Error-Code")
		}
		if code != want {
			t.Errorf("%d bytes: %q, want %s", len(payload), code, want)
		}
	}
}

// Sizes are written in the largest unit that divides them.
func TestSizes(t *testing.T) {
	for n, want := range map[int]string{1: "1B", 1023: "1023B", 1024: "1KB", 1536: "1536B", 512 << 10: "512KB", 1 << 20: "1MB", 4 << 20: "4MB"} {
		if got := formatBytes(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
