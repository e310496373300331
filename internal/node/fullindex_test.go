package node

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/control"
	"github.com/troupe-run/troupe/internal/control/runindex"
)

// limitIndex sets the limit of the index of runs to what it holds and some percent more.
func limitIndex(t *testing.T, h *Node, percent uint64) {
	t.Helper()
	js, err := jetstream.New(connectRole(t, h, bus.RoleNode))
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(t.Context(), "KV_"+h.names.RunBucket())
	if err != nil {
		t.Fatal(err)
	}
	cfg := s.CachedInfo().Config
	cfg.MaxBytes = int64(s.CachedInfo().State.Bytes * (100 + percent) / 100)
	if _, err := js.UpdateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
}

// A run whose row has no room would execute and spend although its client was told of an error. It
// is refused before it has a log. The end of a run waits for room, and is not lost.
func TestAFullIndexRefusesRunsAndLosesNoEnd(t *testing.T) {
	t.Parallel()
	h := startNode(t, t.TempDir())
	c, ctx := connectClient(t, h), testContext(t)
	for _, run := range []string{"ends", "old"} {
		if _, err := h.runs.Add(ctx, client.RunInfo{RunID: run, State: client.RunLive, Title: strings.Repeat("x", 80)}); err != nil {
			t.Fatal(err)
		}
	}
	limitIndex(t, h, 10)
	id := client.NewID()
	_, err := c.Run(ctx, client.RunRequest{RunID: id, Prompt: "Investigate this directory"})
	if err == nil || !strings.Contains(err.Error(), "index") {
		t.Errorf("a run without room for its row: %v", err)
	}
	if logs, err := h.post.Addresses(ctx, id); err != nil || len(logs) > 0 {
		t.Errorf("it has logs: %v, %v", logs, err)
	}
	result := event.Result{Run: "ends", Reason: spec.Completed, Detail: strings.Repeat("d", 400)}
	if _, err := h.runs.RecordOrAdd(ctx, "ends", runindex.Report{Result: &result}); !bus.IsFull(err) {
		t.Fatalf("the index was not full: %v", err)
	}
	h.indexWriter.recordResult("ends", result)
	isFinished := func() bool {
		info, _, err := h.runs.Get(t.Context(), "ends")
		if err != nil {
			t.Fatal(err)
		}
		return info.State == client.RunFinished
	}
	<-time.After(indexRetryPause)                     // the first attempt is refused
	if err := h.runs.Remove(ctx, "old"); err != nil { // as a prune does
		t.Fatal(err)
	}
	limitIndex(t, h, 1000)
	for !isFinished() {
		select {
		case <-time.After(indexPause):
		case <-ctx.Done():
			t.Fatal("the end of the run is lost")
		}
	}
}

// Before new runs are refused for want of room, observers are told that the stores are nearly full, and what makes room, where
// retention may remove nothing.
//
//behaviour:shows K17
func TestNearlyFullIndexIsReportedBeforeItRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := startNode(t, dir)
	for _, run := range []string{"works", "waits"} { // what works stays, however little room there is
		if _, err := h.runs.Add(testContext(t), client.RunInfo{RunID: run, State: client.RunLive, Title: strings.Repeat("x", 400)}); err != nil {
			t.Fatal(err)
		}
	}
	limitIndex(t, h, 35) // 74 % of the limit are used
	sub, err := connectRole(t, h, bus.RoleObserver).SubscribeSync("troupe.evt._cluster.*." + event.KindLogsLow)
	if err != nil {
		t.Fatal(err)
	}
	m, err := sub.NextMsgWithContext(testContext(t)) // of the first pass of retention
	if err != nil {
		t.Fatal(err)
	}
	text := string(m.Data)
	if err := control.ValidateEvent(m.Data); err != nil || !strings.Contains(text, "the index of runs (7") || !strings.Contains(text, "troupe prune --older-than") {
		t.Errorf("%s: %v", text, err)
	}
	if _, err := connectClient(t, h).Run(testContext(t), client.RunRequest{RunID: client.NewID(), Prompt: "Say hello", Model: writeScript(t, "default: [{text: hello}]")}); err != nil {
		t.Errorf("a run is refused already: %v", err)
	}
}
