package node

import (
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
)

// A message after a limit was hit continues the work, in another process: the whole journal of the run before stands
// before the message, as a pair of messages: agent/testdata/journal_survives.txt shows
// that pair, and the digest in the system prompt.
//
//behaviour:shows K12
func TestJournalSurvivesTheLimitOfARun(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	model := writeScript(t, `
default:
  - calls: [{name: update_run_journal, args: {objective: "Choose a pump.", current_state: "The blue pump is best.", handoff_next_action: "Measure its flow."}}]
  - {text: "not done: {{last}}"}
  - {text: "there is no pair of messages for the journal"}
  - {text: "now: {{user}}"}
`)
	dir := t.TempDir()
	h := startNode(t, dir)
	c := connectClient(t, h)
	run := beginRun(t, c, client.RunRequest{Model: model, Prompt: "first", Conversation: "work", MaxTurns: 1})
	waitFinished(t, c, run, spec.MaxTurns)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	c = connectClient(t, startNode(t, dir))
	run = beginRun(t, c, client.RunRequest{Model: model, Prompt: "what now", Conversation: "work"})
	if text := waitFinished(t, c, run, spec.Completed).Result.Text; !strings.HasPrefix(text, "now: Go on.") || !strings.HasSuffix(text, "what now") {
		t.Errorf("the answer of the next run: %q", text)
	}
	talk, err := c.Conversations().Get(testContext(t), "work")
	if err != nil || !strings.Contains(talk.Journal, "The blue pump is best.") || !strings.Contains(talk.Journal, "Measure its flow.") {
		t.Errorf("the journal of the conversation: %v %q", err, talk.Journal)
	}
}
