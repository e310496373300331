package node

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/cluster/shard"
)

// A conversation goes on over many runs, also when their process has ended, with both stores of logs.
//
//behaviour:shows K1 E5
func TestConversationContinuesOverRunsAndProcesses(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	model := writeScript(t, `
default:
  - {text: "one: {{user}}"}
  - {text: "two: {{user}}"}
  - {text: "three: {{user}}"}
`)
	for _, store := range []string{statedir.LogsInFiles, statedir.LogsInJetStream} {
		dir := t.TempDir()
		h := startNode(t, dir, func(c *Config) { c.LogStore = store })
		c := connectClient(t, h)
		say := func(text string) string {
			t.Helper()
			run := beginRun(t, c, client.RunRequest{Model: model, Prompt: text, Conversation: "talk"})
			result := waitFinished(t, c, run, spec.Completed)
			if result.Result.Conversation != "talk" {
				t.Errorf("%s: the result has the conversation %q", store, result.Result.Conversation)
			}
			return result.Result.Text
		}
		if got := say("first"); got != "one: first" {
			t.Errorf("%s: %q", store, got)
		}
		if got := say("second"); !strings.HasPrefix(got, "two: ") || !strings.HasSuffix(got, "second") {
			t.Errorf("%s: %q", store, got)
		}
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		h = startNode(t, dir, func(c *Config) { c.LogStore = store })
		c = connectClient(t, h)
		if got := say("third"); !strings.HasPrefix(got, "three: ") {
			t.Errorf("%s: %q", store, got)
		}
	}
}

// A conversation goes on at another node of the cluster when the node that had it is gone, without an orderly end.
//
//behaviour:shows K1
func TestConversationContinuesOnAnotherNode(t *testing.T) {
	t.Parallel()
	e := startSharedServer(t)
	model := writeScript(t, "default: [{text: 'one: {{user}}'}, {text: 'two: {{user}}'}, {text: 'three: {{user}}'}]\n")
	one, two := startSharedNode(t, e, "one", shard.TTLMin), startSharedNode(t, e, "two", shard.TTLMin)
	waitForSpread(t, one, two)
	say := func(h *Node, text, begins string) {
		t.Helper()
		c := connectClient(t, h)
		run := beginRun(t, c, client.RunRequest{Model: model, Prompt: text, Conversation: "talk"})
		if got := waitFinished(t, c, run, spec.Completed).Result.Text; !strings.HasPrefix(got, begins) || !strings.HasSuffix(got, text) {
			t.Errorf("%q after %q", got, text)
		}
	}
	say(one, "first", "one: ")
	say(two, "second", "two: ")
	one.cutNetwork()
	say(two, "third", "three: ")
	talk, err := connectClient(t, two).Conversations().Get(testContext(t), "talk")
	if err != nil || len(talk.Runs) != 3 {
		t.Errorf("%+v %v", talk, err)
	}
}

// Messages that are posted at the same moment all run, one after the other.
//
//behaviour:shows E5
func TestMessagesPostedTogetherRunInOrder(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	const messages = 6
	h := startNode(t, t.TempDir())
	c := connectClient(t, h)
	var script strings.Builder
	script.WriteString("default:\n")
	for i := range messages {
		fmt.Fprintf(&script, "  - {text: \"answer %d\"}\n", i)
	}
	model := writeScript(t, script.String())
	var posted sync.WaitGroup
	runs := make([]string, messages)
	for i := range runs {
		posted.Go(func() {
			runs[i] = client.NewID()
			if _, err := c.Run(testContext(t), client.RunRequest{RunID: runs[i], Model: model, Prompt: fmt.Sprint("message ", i), Conversation: "busy"}); err != nil {
				t.Error(err)
			}
		})
	}
	posted.Wait()
	answers := map[string]bool{}
	for _, run := range runs {
		answers[waitFinished(t, c, run, spec.Completed).Result.Text] = true
	}
	if len(answers) != messages { // each run has one more reply in its history
		t.Errorf("the answers were %v", answers)
	}
}
