package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/troupe-run/troupe/internal/cli/exit"
)

// TestNodeEndsWhenItsConnectionIsClosedForGood: the server does not accept its credentials any more. What starts the node
// again sees that it has ended; a node that stayed would look well and do nothing.
func TestNodeEndsWhenItsConnectionIsClosedForGood(t *testing.T) {
	first := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir(), Username: "node", Password: "first"}
	s, err := server.NewServer(first)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server is not ready")
	}
	cmd := command(t, "-s", s.ClientURL(), "--user", "node", "--password", "first", "--durability", "lazy", "--http", "off", "--name", "node")
	if line := startNode(t, cmd); !strings.HasPrefix(line, "ready") {
		t.Fatalf("%q", line)
	}
	next := first.Clone()
	next.Password = "second"
	if err := s.ReloadOptions(next); err != nil {
		t.Fatal(err)
	}
	code := exitOf(t, cmd.Wait())
	stderr, ok := cmd.Stderr.(*bytes.Buffer)
	if !ok || code != exit.NoNode || !strings.Contains(stderr.String(), "closed for good") || !strings.Contains(stderr.String(), "hint: start it again") {
		t.Errorf("exit %d\n%s", code, stderr)
	}
}
