package node

import (
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
)

// Beside a question of an agent below the root are the task of the run and the digests of both journals. A later list shows
// the same, and an agent without a journal has none.
func TestQuestionsShowWhatTheRunIsAbout(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	agents := writeAskerAgent(t)
	writeText(t, "---\nname: boss\ndescription: Delegates.\nx-troupe:\n  delegates: [asker]\n---\nDelegate.\n", agents, "boss.md")
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{agents} })
	c, ctx := connectClient(t, h), testContext(t)
	model := writeScript(t, `
agents:
  boss:
    - calls: [{name: update_run_journal, args: {objective: "Buy a pump.", current_state: "The prices are known."}}]
    - calls: [{name: delegate, args: {agent: asker, task: "Choose one"}}]
    - text: "bought"
  asker:
    - calls: [{name: append_run_journal_entry, args: {section: blockers, entry: "two cost the same"}}]
    - calls: [{name: ask_human, args: {question: "Which?"}}]
    - text: "the blue one"
`)
	run := beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "boss", Prompt: "Buy a pump for the garden"})
	plain := beginRun(t, c, client.RunRequest{Model: writeScript(t, longAsker(0)), Agents: agents, Agent: "asker", Prompt: "Ask"})
	for _, id := range []string{run, plain} {
		if info, err := c.Wait(ctx, id); err != nil || info.State != client.RunParked {
			t.Fatalf("%+v %v", info, err)
		}
	}
	for range 2 {
		list, err := c.Questions(ctx)
		if err != nil || len(list) != 2 {
			t.Fatalf("%+v %v", list, err)
		}
		for _, q := range list {
			got, want := []string{q.Goal, q.Journal, q.AgentJournal}, []string{"Ask", "", ""}
			if q.RunID == run {
				want = []string{"Buy a pump for the garden", "objective: Buy a pump.\nstate: The prices are known.", "blocker: two cost the same"}
			}
			for i := range want {
				if got[i] != want[i] {
					t.Errorf("%s of %s: %q, want %q", q.Agent, q.RunID, got, want)
				}
			}
		}
	}
	for _, id := range []string{run, plain} {
		list, err := c.Questions(ctx)
		if err != nil || len(list) == 0 {
			t.Fatalf("%+v %v", list, err)
		}
		for _, q := range list {
			if q.RunID != id {
				continue
			}
			if err := c.Answer(ctx, client.AnswerRequest{RunID: id, Agent: q.Agent, Query: q.Query, Decision: "text", Text: "the blue one"}); err != nil {
				t.Fatal(err)
			}
		}
		waitFinished(t, c, id, spec.Completed)
	}
}
