package actors_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/gate"
	"github.com/troupe-run/troupe/mailbox/memory"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
)

// Names of gates come from other nodes, or from whoever can write what they
// share: a node does not grow with them.
func TestGatesThatAreOnlyHeardOfAreBounded(t *testing.T) {
	node, err := actors.Start(t.Context(), actors.Config{Name: "test", Post: memory.New(memory.Config{}), Lease: 1,
		Model: func(string) (model.Client, string, error) { return nil, "", nil },
		Tools: func(agent.Task) (*tool.Set, error) { return tool.NewSet() }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(node.Stop)
	for i := range 5000 {
		node.Hear(fmt.Sprint("key-", i), gate.Notice{PauseMS: 60_000, Why: gate.Limited, Requests: 10})
	}
	shown := make(chan map[string]gate.Status, 1)
	node.Gates(func(all map[string]gate.Status) { shown <- all })
	select {
	case all := <-shown:
		if len(all) == 0 || len(all) > 1024 {
			t.Errorf("%d gates are kept", len(all))
		}
	case <-time.After(deadline):
		t.Fatal("no gates are shown")
	}
}
