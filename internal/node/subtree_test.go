package node

import (
	"net/http"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/verify"
	"github.com/troupe-run/troupe/supervisor"
)

// TestFrozenSubtreeWaits: an operator freezes one agent and those below it over HTTP while the run works. The other agents
// end, that one ends when it is unfrozen; a limit of it is shown, and a limit that cannot be set is refused. The logs prove
// what they should.
//
//behaviour:shows G1
func TestFrozenSubtreeWaits(t *testing.T) {
	t.Parallel()
	script, gate, agents := heldFamily(t)
	h, w := startWeb(t, func(c *Config) { c.Roots = []string{agents} })
	c := connectClient(t, h)
	never := supervisor.Policy{Version: 1, Rules: []supervisor.Rule{{Name: "never", On: "turn", When: []supervisor.Condition{{Fact: "tokens", Op: ">", Number: 1e9}}, Why: "never"}}} // each turn asks the supervisor
	id := beginRun(t, c, client.RunRequest{Model: script, Agents: agents, Agent: "boss", Policy: &never})
	awaitEvents(t, c, id, event.KindToolStarted, 2) // they wait for the gate
	path := "/api/v1/runs/" + id + "/budget"
	w.post(path, `{"agent":"root-9","freeze":true}`, http.StatusBadRequest, nil)
	w.post(path, `{"agent":"root-1-0","limits":{"depth":3}}`, http.StatusBadRequest, nil)
	w.post(path, `{"unfreeze":true}`, http.StatusBadRequest, nil)
	w.post(path, `{"agent":"root-1-0","limits":{"tokens":400000},"freeze":true,"by":"ann"}`, http.StatusOK, nil)
	awaitEvents(t, c, id, event.KindBudgetChanged, 1)
	openGate(t, gate)
	awaitEvents(t, c, id, event.KindAgentFinished, 1) // root-1-1
	d, err := c.Describe(testContext(t), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range d.Description.Agents {
		if frozen := a.Subtree != nil && a.Subtree.Frozen && a.Subtree.Limit.Tokens == 400000; frozen != (a.ID == "root-1-0") {
			t.Errorf("%s has the limit %+v", a.ID, a.Subtree)
		}
	}
	ended := ""
	err = c.Events(testContext(t), id, nil, false, func(e client.Event, _ []byte) error {
		if e.Kind == event.KindAgentFinished {
			ended += e.Agent
		}
		return nil
	})
	if err != nil || ended != "root-1-1" {
		t.Fatalf("ended while root-1-0 is frozen: %q, %v", ended, err)
	}
	if err := c.Budget(testContext(t), client.BudgetRequest{RunID: id, Agent: "root-1-0", Unfreeze: true}); err != nil {
		t.Fatal(err)
	}
	waitFinished(t, c, id, spec.Completed)
	for _, found := range verify.Logs(dumpRun(t, c, id).Entries).Findings {
		t.Errorf("%+v", found)
	}
}
