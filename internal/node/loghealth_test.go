package node

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/statedir"
)

// TestNodeReportsAServerThatStoresNothing: a server whose store is off sends no reply to an
// append. The node immediately refuses what it could not store, with the reason, and
// continues without help when the server stores again.
func TestNodeReportsAServerThatStoresNothing(t *testing.T) {
	t.Parallel()
	s := newSilenceableServer(t)
	h := s.startNode(t, "one")
	c := connectClient(t, h)
	told := make(chan *client.LogHealth, 64)
	stop, err := c.WatchLogHealth(func(_ string, i *client.LogHealth) { told <- i })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	s.muteSubject(t, "troupe.box.>", "nobody.box.>")
	ask := func() error {
		_, err := c.Run(t.Context(), client.RunRequest{RunID: client.NewID(), Prompt: "go", Model: "builtin/scout"})
		return err
	}
	first := ask()
	var refused *client.Error
	if !errors.As(first, &refused) || refused.Code != client.CodeLogs || refused.Hint == "" {
		t.Errorf("while nothing is stored a run is answered with %v", first)
	}
	if i := <-told; i == nil || i.Why == "" && i.Path != "" {
		t.Errorf("it is told as %+v", i)
	}
	began := time.Now()
	if err := ask(); !errors.As(err, &refused) || refused.Code != client.CodeLogs || time.Since(began) > 5*time.Second {
		t.Errorf("the second is answered after %v with %v", time.Since(began), err)
	}
	nodes, err := c.Nodes(t.Context())
	if err != nil || len(nodes) != 1 || nodes[0].LogHealth == nil || nodes[0].LogHealth.Since == "" {
		t.Errorf("the node says of itself %+v: %v", nodes, err)
	}
	if err := s.GlobalAccount().RemoveMapping("troupe.box.>"); !err {
		t.Fatal("the mapping was not there")
	}
	for i := range told {
		if i == nil {
			break
		}
	}
	beginRun(t, c, client.RunRequest{Prompt: "go", Model: "builtin/scout"}) // the server stores again
}

// TestLowDiskRefusesNewRuns: the node reports a disk before it is full; it refuses new runs
// with a remedy that works, and live ones continue (PROTOCOL P16).
func TestLowDiskRefusesNewRuns(t *testing.T) {
	t.Parallel()
	h := startNode(t, t.TempDir(), func(*Config) {})
	c := connectClient(t, h)
	ask := func() error {
		_, err := c.Run(context.WithoutCancel(t.Context()), client.RunRequest{RunID: client.NewID(), Prompt: "go", Model: "builtin/scout"})
		return err
	}
	h.logHealth.reportDisk(statedir.DiskState{Path: "/x", Free: 5, Low: true, Why: "the disk of /x is nearly full", Remedy: "free some space on the disk of /x"})
	var refused *client.Error
	if err := ask(); !errors.As(err, &refused) || refused.Code != client.CodeLogs || !strings.Contains(refused.Text, "nearly full") || strings.Contains(refused.Hint, "prune") {
		t.Errorf("on a low disk a run is answered with %v", err)
	}
	h.logHealth.reportDisk(statedir.DiskState{Path: "/x", Free: 1 << 40})
	if err := ask(); err != nil {
		t.Errorf("there is room again: %v", err)
	}
}
