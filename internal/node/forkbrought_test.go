package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
)

// A command of the user forks a run into a copy that the node of another command does not have as a root: it brings the copy
// for exactly this request. Nobody else may name it. The limits of a fork are those that any run may have.
//
//behaviour:shows D6
func TestAttackForkIntoABroughtDirectory(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	root, away, state, agents := t.TempDir(), t.TempDir(), t.TempDir(), writersAgents(t)
	model := writeScript(t, writers(1, 1))
	h := startNode(t, state, func(c *Config) {
		c.Roots, c.UserDirs, c.requestsFromUser = []string{root}, true, false
		c.Trust = []string{agents, filepath.Dir(strings.TrimPrefix(model, "script/"))}
	})
	c := connectClient(t, h)
	first := beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "boss", Dir: root, Yes: true})
	waitFinished(t, c, first, spec.Completed)
	to := filepath.Join(away, "copy")
	if err := os.CopyFS(to, os.DirFS(root)); err != nil {
		t.Fatal(err)
	}
	own := client.RunRequest{RunID: client.NewID(), Fork: first + "@root:0", Prompt: "Write.", Dir: to, Agents: agents, Model: model}
	refused := func(what string, r client.RunRequest, why string) {
		t.Helper()
		if _, err := c.Run(testContext(t), r); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", what, err)
		}
	}
	const noRoot = "is not under a root of this node"
	refused("before the user brings it", own, noRoot)
	if err := BringPlaces(Config{StateDir: state}, own); err != nil {
		t.Fatal(err)
	}
	other := own
	other.RunID, other.Prompt = client.NewID(), "Remove all files."
	refused("another request", other, noRoot)
	large := own
	large.MaxTokens = 1 << 60
	refused("a limit that no run may have", large, "max_tokens is")
	if _, err := c.Run(testContext(t), own); err != nil {
		t.Fatal(err)
	}
	waitAnswering(t, c, own.RunID)
}
