package node

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/model"
)

// buildWithKey makes the first entry of a run of a node that has a key.
func buildWithKey(t *testing.T, r client.RunRequest) (spec.LoopOptions, map[string]string, []model.ToolSpec) {
	t.Helper()
	dir := t.TempDir()
	h := startNode(t, t.TempDir(), func(c *Config) {
		c.Roots = []string{dir}
		c.Env = func(name string) string {
			if name == "ANTHROPIC_API_KEY" {
				return "a-key"
			}
			return ""
		}
	})
	r.RunID, r.Prompt, r.Dir = client.NewID(), "p", dir
	o, _, err := h.buildRun(r)
	if err != nil {
		t.Fatal(err)
	}
	systems := map[string]string{}
	for _, d := range o.Definitions {
		systems[d.Name] = d.System
	}
	return o.LoopOptions, systems, o.Tools
}

// An agent's rules are part of its stable system prompt; the day and the place are behind
// the breakpoint (D2).
//
//behaviour:shows D2
func TestSystemPromptsAreComposedOfLayers(t *testing.T) {
	t.Parallel()
	m, systems, _ := buildWithKey(t, client.RunRequest{Model: "anthropic/claude-sonnet-5-5", Constraints: []string{"Spend nothing.", "Ask first."}, Criteria: []string{"A is found."}})
	for name, s := range systems {
		if strings.HasPrefix(s, "agent: ") ||
			!strings.HasSuffix(s, "\n\nConstraints of this run:\n- Spend nothing.\n- Ask first.\n\nThe run is a success if:\n- A is found.") {
			t.Errorf("%s: %q", name, s)
		}
	}
	if !strings.HasPrefix(m.Dynamic, "Today is ") || !strings.Contains(m.Dynamic, "in the directory /") {
		t.Errorf("dynamic: %q", m.Dynamic)
	}
	m, systems, _ = buildWithKey(t, client.RunRequest{Model: "builtin/scout"})
	if m.Dynamic != "" || strings.Contains(systems["coordinator"], "Constraints") {
		t.Errorf("the built-in planner reads neither: %q, %q", m.Dynamic, systems["coordinator"])
	}
}

// The cheapest model of the provider writes summaries, and no other one if its price is
// unknown (D3).
//
//behaviour:shows D3
func TestSummariesAreWrittenByACheapModel(t *testing.T) {
	t.Parallel()
	m, _, _ := buildWithKey(t, client.RunRequest{Model: "anthropic/claude-sonnet-5-5"})
	if s := m.Context.Model; s == nil || s.Name != "anthropic/claude-haiku-5-5" || !s.Price.Known || s.Window == 0 {
		t.Errorf("summaries by %+v", s)
	}
	for _, name := range []string{"builtin/scout", "anthropic/claude-haiku-5-5", "anthropic/unlisted"} {
		if m, _, _ := buildWithKey(t, client.RunRequest{Model: name, AllowUnpriced: []string{"anthropic/unlisted"}}); m.Context.Model != nil {
			t.Errorf("%s: summaries by %+v", name, m.Context.Model)
		}
	}
}

// The journal is offered to agents that are not the built-in planner's.
func TestTheJournalIsOffered(t *testing.T) {
	t.Parallel()
	_, _, tools := buildWithKey(t, client.RunRequest{Model: "builtin/scout"})
	for _, toolSpec := range agent.JournalTools() {
		if !slices.Contains(tools, toolSpec) {
			t.Errorf("%s is not a tool of the run", toolSpec.Name)
		}
	}
}

// A run that fails leaves its journal to the agent or user that continues its work (D7).
//
//behaviour:shows D7
func TestAFailedRunShowsItsJournal(t *testing.T) {
	t.Parallel()
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{"/"} })
	recordEvents(t, h)
	c := connectClient(t, h)
	dir := t.TempDir()
	agents := t.TempDir()
	if err := os.WriteFile(filepath.Join(agents, "clerk.md"), []byte("---\nname: clerk\ndescription: keeps a journal\n---\nYou keep a journal.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	name := writeScript(t, `
agents:
  clerk:
    - calls: [{name: update_run_journal, args: {objective: "count them", handoff_next_action: "count the rest"}},
              {name: append_run_journal_entry, args: {section: verified_findings, entry: "there are two"}}]
    - error: {class: misconfigured, message: "the key was withdrawn"}
`)
	run := beginRun(t, c, client.RunRequest{Prompt: "count", Dir: dir, Agent: "clerk", Agents: agents, Model: name})
	info := waitFinished(t, c, run, spec.ModelError)
	for _, want := range []string{"## objective\ncount them", "- there are two", "## handoff_next_action\ncount the rest"} {
		if !strings.Contains(info.Result.Journal, want) {
			t.Errorf("the result's journal lacks %q: %q", want, info.Result.Journal)
		}
	}
	told := ""
	_, events := pagedEvents(t, c, run)
	for _, raw := range events {
		told += raw
	}
	if !strings.Contains(told, `"kind":"journal.updated"`) || !strings.Contains(told, `"sections":["objective","verified_findings","handoff_next_action"]`) {
		t.Errorf("no event tells of the edits: %s", told)
	}
}
