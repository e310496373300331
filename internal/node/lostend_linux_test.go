package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/mailbox"
)

// loseFinish removes the entries in which an agent said that it has ended.
func loseFinish(t *testing.T, from string) func([][]byte) [][]byte {
	return func(log [][]byte) (kept [][]byte) {
		for _, data := range log {
			e, err := mailbox.Decode(data)
			if err != nil {
				t.Fatal(err)
			}
			if e.From.Agent() != from || e.Items[0].Kind != (agent.Finish{}).Kind() {
				kept = append(kept, data)
			}
		}
		if len(kept) == len(log) {
			t.Fatalf("no entry says that %s has ended", from)
		}
		return kept
	}
}

// TestAttackRunThatLostTheEndOfAChildCanBeEnded: a child has ended, and the log of the
// supervisor lost the entry that said so. A cancel with now ends the run, whether the
// other agents work or wait for that child.
//
//behaviour:shows B5
func TestAttackRunThatLostTheEndOfAChildCanBeEnded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	gate := newGate(t)
	for name, text := range map[string]string{
		"quick.md":  "---\nname: quick\ndescription: Answers.\n---\nAnswer.\n",
		"keeper.md": fmt.Sprintf("---\nname: keeper\ndescription: Waits for a file.\nx-troupe:\n  tools:\n    - name: wait\n      description: Waits.\n      command: true < %q\n      effect: read\n---\nWait.\n", gate),
		"boss.md":   "---\nname: boss\ndescription: Delegates.\nx-troupe:\n  delegates: [keeper, quick]\n---\nDelegate.\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	model := writeScript(t, "agents:\n  boss:\n    - calls:\n        - {name: delegate, args: {agent: quick, task: first}}\n        - {name: delegate, args: {agent: keeper, task: second}}\n    - text: both\n  quick:\n    - text: quick\n  keeper:\n    - calls: [{name: wait}]\n    - text: waited\n")
	state, open := t.TempDir(), func(c *Config) { c.Roots = []string{dir} }
	h := startNode(t, state, open)
	c := connectClient(t, h)
	run := beginRun(t, c, client.RunRequest{Model: model, Agents: dir, Agent: "boss"})
	awaitEvents(t, c, run, event.KindToolStarted, 1)
	awaitEvents(t, c, run, event.KindAgentFinished, 1)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	h = startNode(t, state, open)
	c = connectClient(t, h)
	rewriteLog(t, h, mailbox.At(run, mailbox.Super), loseFinish(t, "root-1-0"))
	openGate(t, gate) // root then waits for the lost end alone
	if _, err := c.Run(testContext(t), client.RunRequest{RunID: run, Resume: true}); err != nil {
		t.Fatal(err)
	}
	awaitEvents(t, c, run, event.KindAgentFinished, 2)
	began := time.Now()
	reply, err := c.Cancel(testContext(t), client.CancelRequest{RunID: run, Now: true})
	t.Logf("after %v: %+v %v", time.Since(began).Round(time.Millisecond), reply, err)
	if refused := (*client.Error)(nil); err != nil && !(errors.As(err, &refused) && refused.Code == client.CodeConflict) { // the run may end by itself
		t.Fatal(err)
	}
	info, err := c.Wait(testContext(t), run)
	if err != nil || info.State != client.RunFinished || info.Result == nil {
		t.Fatalf("after the cancel the run is %+v: %v", info, err)
	}
	t.Logf("ended as %s %s", info.Result.Reason, info.Result.Detail)
	deleteDamagedRun(t, c, run)
}
