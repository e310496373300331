package troupe_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/troupe-run/troupe"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
)

// The second run of a program that allows one waits until the first has ended, and the
// third is refused; a limit that lets no run begin is refused, too.
//
//behaviour:shows G5
func TestLiveRunsOfAProgramAreBounded(t *testing.T) {
	begun, gate := make(chan struct{}, 2), make(chan struct{})
	wait := tool.Func("wait", "Waits.", model.Read, func(ctx context.Context, _ struct{}) (string, error) {
		begun <- struct{}{}
		select {
		case <-gate:
		case <-ctx.Done():
		}
		return "done", ctx.Err()
	})
	n := startScripted(t, "agents: {a: [{calls: [{name: wait}]}, {text: done}]}",
		troupe.Config{Tools: []tool.Tool{wait}, Agents: namedAgents("a"), MaxLiveRuns: 1, MaxQueuedRuns: 1})
	ctx := testContext(t)
	ends := make(chan error, 2)
	run := func(id string) {
		go func() {
			_, err := n.Run(ctx, troupe.Task{Prompt: "wait", RunID: id})
			ends <- err
		}()
	}
	first, second := client.NewID(), client.NewID()
	run(first)
	<-begun
	if _, err := n.Client().Run(ctx, client.RunRequest{RunID: second, Prompt: "wait", Agent: "a"}); err != nil {
		t.Fatal(err)
	}
	for { // the acknowledgement is of the log; the node reads it a moment later
		info, err := n.Client().Get(ctx, second)
		if err != nil {
			t.Fatal(err)
		}
		if info.State == client.RunQueued && info.Position == 1 {
			break
		}
	}
	var refused *client.Error
	if _, err := n.Run(ctx, troupe.Task{Prompt: "wait"}); !errors.As(err, &refused) || refused.Code != client.CodeLimit {
		t.Errorf("a run beyond the queue is answered with %v", err)
	}
	run(second)
	close(gate)
	for range 2 {
		if err := <-ends; err != nil {
			t.Error(err)
		}
	}
	if bad, err := troupe.Start(ctx, troupe.Config{MaxLiveRuns: -1}); err == nil || !strings.Contains(err.Error(), "--max-live-runs -1") {
		t.Errorf("a negative limit: %v", err)
		if err == nil {
			t.Error(bad.Close())
		}
	}
}
