package node

import (
	"errors"
	"os"
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/bus/statedir"
)

// TestLogsInFiles: a node whose logs are in files runs tasks, finds them again after a restart
// without being told where they are, and does not open them as streams.
func TestLogsInFiles(t *testing.T) {
	t.Parallel()
	dir, work := t.TempDir(), t.TempDir()
	inFiles := func(c *Config) { c.LogStore, c.Roots = statedir.LogsInFiles, []string{work} }
	h := startNode(t, dir, inFiles)
	if h.streams != nil {
		t.Fatal("the logs are in streams")
	}
	c := connectClient(t, h)
	run := client.NewID()
	beginRun(t, c, client.RunRequest{RunID: run, Prompt: "go", Dir: work, Model: "builtin/scout"})
	waitFinished(t, c, run, spec.Completed)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if found, err := os.ReadDir(statedir.LogsDir(dir)); err != nil || len(found) == 0 {
		t.Errorf("%v, %v", found, err)
	}
	if _, err := Start(t.Context(), Config{StartServer: embedded.StartServer, StateDir: dir, NoPort: true, LogStore: statedir.LogsInJetStream}); !errors.Is(err, statedir.ErrLogStore) {
		t.Fatalf("with the other store it is %v", err)
	}
	h = startNode(t, dir, func(*Config) {})
	logs, err := h.post.Addresses(testContext(t), run)
	if err != nil || len(logs) == 0 {
		t.Errorf("the logs of the run are %v, %v", logs, err)
	}
}

// TestNodesShareStreams: nodes of one server cannot keep their logs in files of one machine.
func TestNodesShareStreams(t *testing.T) {
	_, err := Start(t.Context(), Config{Bus: bus.Options{Servers: "nats://127.0.0.1:1"}, LogStore: statedir.LogsInFiles})
	if !errors.Is(err, statedir.ErrLogStore) {
		t.Error(err)
	}
}
