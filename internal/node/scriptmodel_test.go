package node

import (
	"errors"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/client"
)

// A node whose own model is a script that is missing says so with each run, and how the path of a script is written.
func TestMissingScriptOfTheNodeHasItsOwnHint(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	h := startNode(t, t.TempDir(), func(c *Config) { c.Model = "script/nowhere/reply.yaml" })
	_, err := connectClient(t, h).Run(testContext(t), client.RunRequest{RunID: client.NewID(), Prompt: "p"})
	var refused *client.Error
	if !errors.As(err, &refused) || !strings.Contains(refused.Text, "no such file") || !strings.Contains(refused.Hint, "script//FILE") {
		t.Errorf("%+v", err)
	}
}
