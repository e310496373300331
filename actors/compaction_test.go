package actors_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget/tokens"
	"github.com/troupe-run/troupe/mailbox/memory"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
)

// watchedEvents keeps what observers were told.
type watchedEvents struct {
	mu     sync.Mutex
	kinds  map[string]int
	deltas string
}

func (w *watchedEvents) recordEvent(e event.Published) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kinds[e.Kind]++
	if d, ok := e.Data.(event.Delta); ok {
		w.deltas += d.Text
	}
}

const summaryText = "So far only shelves were listed."

// A run over real shells, whose results the shell itself counts, stays within
// a small window: the summary is a call of its own, and nobody reads it as the
// agent's words (D1, D3).
//
//behaviour:shows D3
func TestARunStaysWithinItsWindow(t *testing.T) {
	const window, turns = 9000, 30
	page := pageTool{"look", 2 << 10}
	set, err := tool.NewSet(page)
	if err != nil {
		t.Fatal(err)
	}
	var largest, taken, summaries int64 // the run makes one call at a time
	client := clientFunc(func(_ context.Context, r model.Request, emit func(model.Delta)) (model.Reply, error) {
		reply := sayReply("done")
		reply.Usage = model.Usage{Input: tokens.Estimate(r.System), Output: 20}
		for _, m := range r.Messages {
			reply.Usage.Input += tokens.Message(m)
		}
		largest = max(largest, reply.Usage.Input)
		switch {
		case len(r.Tools) == 0:
			summaries++
			reply.Message.Text = summaryText
		case taken < turns:
			taken++
			reply.Message = model.Message{Text: "I look.", Calls: []model.ToolCall{{Name: "look", Args: "{}"}}}
		}
		if emit != nil {
			emit(model.Delta{Kind: model.TextDelta, Text: reply.Message.Text})
		}
		return reply, nil
	})
	w := &watchedEvents{kinds: map[string]int{}}
	over := make(chan event.Result, 1)
	node, err := actors.Start(t.Context(), actors.Config{Post: memory.New(memory.Config{}), Lease: 1, OnEvent: w.recordEvent,
		Model:    func(string) (model.Client, string, error) { return client, "m", nil },
		Tools:    func(spec.Task) (*tool.Set, error) { return set, nil },
		OnResult: func(_ string, r event.Result) { over <- r }})
	if err != nil {
		t.Fatal(err)
	}
	defer node.Stop()
	o := openedRun("r", page)
	o.RootTurns, o.Limits, o.Model.Window = turns+2, spec.RunLimits{}, window
	o.Agent.Output, o.LoopOptions = 500, spec.LoopOptions{Context: spec.DefaultLoopOptions().Context}
	if err := node.Open(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	select {
	case r := <-over:
		if r.Reason != spec.Completed || r.Turns != turns+1 {
			t.Errorf("ended %s after %d turns: %s", r.Reason, r.Turns, r.Detail)
		}
	case <-time.After(time.Minute):
		t.Fatal("the run hangs")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if summaries == 0 || w.kinds[event.KindContextCompacted] != int(summaries) || largest > window-500 {
		t.Errorf("%d summaries, %d compactions told, largest prompt %d of %d", summaries, w.kinds[event.KindContextCompacted], largest, window)
	}
	if strings.Contains(w.deltas, summaryText) || !strings.Contains(w.deltas, "I look.") {
		t.Errorf("observers read %q", w.deltas)
	}
}
