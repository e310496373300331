package node

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/bus/statedir"
)

// A run whose log was lost with its disk cannot be continued: a client that resumes it gets
// an error, instead of waiting for ever, and from then on its row says how it ended (FM10).
func TestRunWithoutALogIsReportedAsDamaged(t *testing.T) {
	t.Parallel()
	model, gate, agents := heldFamily(t)
	state := t.TempDir()
	h := startNode(t, state, logsInStreams, func(c *Config) { c.Roots = []string{agents} })
	c := connectClient(t, h)
	id := beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "boss"})
	t.Cleanup(func() { openGate(t, gate) })
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	emptyLogs(t, state)

	h = startNode(t, state, func(c *Config) { c.Roots = []string{agents} })
	c = connectClient(t, h)
	_, err := c.Run(testContext(t), client.RunRequest{RunID: id, Resume: true})
	if err == nil || !strings.Contains(err.Error(), "log_damaged: no log of the run is left") {
		t.Fatalf("resumed: %v", err)
	}
	list, err := c.List(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 1 || list[0].State != client.RunFinished {
		t.Fatalf("listed: %+v", list)
	}
	waitFinished(t, c, id, spec.LogDamaged)
}

// emptyLogs empties all logs of a store.
func emptyLogs(t *testing.T, state string) {
	t.Helper()
	e, err := embedded.Start(embedded.Config{StateDir: statedir.StateDir(state), DontListen: true, Lazy: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	nc, err := e.Connect(bus.RoleNode)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	names := js.StreamNames(testContext(t))
	for name := range names.Name() {
		if !strings.HasPrefix(name, "TROUPE_BOX_") {
			continue
		}
		stream, err := js.Stream(testContext(t), name)
		if err == nil {
			err = stream.Purge(testContext(t))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := names.Err(); err != nil {
		t.Fatal(err)
	}
}
