package troupe_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/troupe-run/troupe"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/script"
)

// requestRecorder is a model that records its requests.
type requestRecorder struct {
	model.Client
	mu       sync.Mutex
	requests []model.Request
}

func (c *requestRecorder) Complete(ctx context.Context, req model.Request, emit func(model.Delta)) (model.Reply, error) {
	c.mu.Lock()
	c.requests = append(c.requests, req)
	c.mu.Unlock()
	return c.Client.Complete(ctx, req, emit)
}

// A program's task sets the output of a call, and the model is told before its last turn.
//
//behaviour:shows A8 K14
func TestLimitsOfATaskReachTheModel(t *testing.T) {
	replies, err := script.Parse([]byte(`
agents:
  boss: [{calls: [{name: delegate, args: {agent: helper, task: go}}]}, {text: done}]
  helper: [{text: helped}]
`))
	if err != nil {
		t.Fatal(err)
	}
	m := &requestRecorder{Client: replies.Client("")}
	n, err := troupe.Start(testContext(t), troupe.Config{Agents: namedAgents("boss", "helper"), Models: map[string]model.Client{"own/model": m}, Model: "own/model",
		Env: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}()
	task := troupe.Task{Prompt: "work", MaxTurns: 2, AgentLimits: client.AgentLimits{MaxOutputTokens: 9000}}
	if _, err := n.Run(testContext(t), task); err != nil {
		t.Fatal(err)
	}
	newest := m.requests[len(m.requests)-1]
	if note := newest.Messages[len(newest.Messages)-1].Text; newest.MaxOutput != 9000 || !strings.Contains(note, "turns: 1 of 2 are left. Finish now") {
		t.Errorf("%d output tokens, and the last message is %q", newest.MaxOutput, note)
	}
	if _, err := n.Run(testContext(t), troupe.Task{Prompt: "work", AgentLimits: client.AgentLimits{MaxCuts: 101}}); err == nil || !strings.Contains(err.Error(), "max_cuts is 101: it may be -1 to 100") {
		t.Errorf("%v", err)
	}
}
