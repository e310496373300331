package node

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/client"
)

// A client that asks for an agent with a broken file learns what is wrong with the file,
// not that the agent does not exist.
func TestRequestForABrokenAgentFileNamesTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, ".troupe", "agents", "clerk.md")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("---\nname: clerk\ndescription: d\nmaxTurns: many\n---\nx\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{dir} })
	_, err := connectClient(t, h).Run(testContext(t), client.RunRequest{RunID: client.NewID(), Prompt: "p", Dir: dir, Agent: "clerk", Model: "builtin/scout"})
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Code != client.CodeBad || !strings.Contains(refused.Text, "clerk.md") {
		t.Fatalf("refused as %v", err)
	}
}
