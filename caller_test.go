package troupe_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/troupe-run/troupe"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/script"
	"github.com/troupe-run/troupe/troupetest"
)

// callerRecorder is a model that records who asks it, and how.
type callerRecorder struct {
	model.Client
	mu      sync.Mutex
	callers map[model.Caller]string // to their system prompts
}

func (c *callerRecorder) Complete(ctx context.Context, req model.Request, emit func(model.Delta)) (model.Reply, error) {
	c.mu.Lock()
	c.callers[req.Caller] = req.System
	c.mu.Unlock()
	return c.Client.Complete(ctx, req, emit)
}

// A request names the agent whose turn it is, outside of the prompt, which has the agent's
// instructions and no line for scripted models.
func TestARequestNamesItsAgentBesideThePrompt(t *testing.T) {
	replies, err := script.Parse([]byte(`
agents:
  boss: [{calls: [{name: delegate, args: {agent: helper, task: go}}]}, {text: "{{last}}"}]
  helper: [{text: helped}]
`))
	if err != nil {
		t.Fatal(err)
	}
	m := &callerRecorder{Client: replies.Client(""), callers: map[model.Caller]string{}}
	n := troupetest.Start(t, troupe.Config{Agents: namedAgents("boss", "helper"), Models: map[string]model.Client{"own/model": m}, Model: "own/model"}, "")
	n.Run(troupe.Task{Prompt: "work"}).AssertCompleted("helped")
	if len(m.callers) != 2 {
		t.Errorf("%v", m.callers)
	}
	for caller, system := range m.callers {
		id := map[string]string{"boss": "root", "helper": "root-1-0"}[caller.Name]
		if caller.ID != id || caller.Node == "" || !strings.HasPrefix(system, "Do as you are told.") {
			t.Errorf("%+v with the prompt %q", caller, system)
		}
	}
}
