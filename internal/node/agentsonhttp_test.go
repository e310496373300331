package node

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/httpapi"
	"github.com/troupe-run/troupe/supervisor"
)

// GET /api/v1/agents has of each agent what a form needs: what its definition says, and what holds if a request says nothing.
func TestAgentsAreDescribedForAForm(t *testing.T) {
	t.Parallel()
	model := writeScript(t, "default: [{text: done}]")
	painter := agentfile.Definition{Name: "painter", Description: "Paints.", Prompt: "You paint.", Model: model, Tools: []agentfile.ToolRef{{Name: "read_file"}, {Name: "write_file", Args: "src/**"}},
		DisallowedTools: []agentfile.ToolRef{{Name: "shell"}}, Delegates: []string{}, MaxTurns: 7, Timeout: 2 * time.Minute, Effort: "low", Budget: agentfile.Budget{Tokens: 12000, Share: 0.5},
		Criteria: []string{"It is green."}, OutputSchema: `{"type":"object","properties":{"colour":{"type":"string"}},"required":["colour"],"additionalProperties":false}`}
	_, w := startWeb(t, func(c *Config) { c.Model, c.Contributions.Agents = model, []agentfile.Definition{painter} })
	var list []httpapi.Agent
	w.get("/api/v1/agents", http.StatusOK, &list)
	find := func(name string) httpapi.Agent {
		i := slices.IndexFunc(list, func(a httpapi.Agent) bool { return a.Name == name })
		if i < 0 {
			t.Fatalf("no %s in %+v", name, list)
		}
		return list[i]
	}
	p, l := find("painter"), httpapi.AgentLimits{MaxToolCalls: supervisor.CallsMax, MaxTurns: 7, TimeoutMS: 120_000, MaxTokens: ModelTokens, AgentTokens: 12000, AgentShare: 0.5}
	if p.Model != model || p.RunModel != model || !slices.Equal(p.Tools, []string{"read_file", "write_file(src/**)"}) || !slices.Equal(p.DisallowedTools, []string{"shell"}) || p.Delegates == nil || p.Effort != "low" ||
		p.Limits != l || p.OutputSchema["type"] != "object" || len(p.Criteria) != 1 || p.Default {
		t.Errorf("%+v", p)
	}
	a, l := find("assistant"), httpapi.AgentLimits{MaxToolCalls: supervisor.CallsMax, MaxTurns: spec.TurnsRoot, TimeoutMS: spec.SoftDefaultMS, MaxTokens: ModelTokens}
	if !a.Default || a.Model != "" || a.RunModel != model || a.Tools != nil || a.Limits != l {
		t.Errorf("%+v", a)
	}
	if c := find("coordinator"); c.Default || c.Limits.MaxTurns != 12 || !slices.Contains(c.Tools, "delegate") {
		t.Errorf("%+v", c)
	}

	_, w = startWeb(t, func(c *Config) { c.Env = func(string) string { return "" } })
	list = nil
	w.get("/api/v1/agents", http.StatusOK, &list)
	for _, name := range []string{"assistant", "coordinator"} { // without a key, a run begins with the agent that the built-in model can play
		if a := find(name); a.RunModel != "builtin/scout" || a.Limits.MaxTokens != ScoutTokens || a.Default != (name == "coordinator") {
			t.Errorf("%+v", a)
		}
	}
}
