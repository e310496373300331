package node

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/mcpclient"
)

// A refusal names the field in question and a valid remedy: a root is a directory.
func TestARefusedPathIsNamedByItsField(t *testing.T) {
	t.Parallel()
	root, away := t.TempDir(), t.TempDir()
	file := serverFile(t, filepath.Join(away, mcpclient.FileName), map[string]any{})
	h := newBuildOnlyNode(root)
	for _, c := range []struct {
		field, path, hint string
		ask               func(r *client.RunRequest, path string)
	}{
		{"dir", away, "--root " + away + ",", func(r *client.RunRequest, path string) { r.Dir = path }},
		{"agents", away, "--root " + away + ",", func(r *client.RunRequest, path string) { r.Agents = path }},
		{"mcp_config", file, "--root " + away + ",", func(r *client.RunRequest, path string) { r.MCPConfig = path }},
	} {
		for path, want := range map[string][2]string{
			c.path:                              {c.field + " " + c.path + " is not under a root of this node", c.hint},
			"relative":                          {c.field + ` "relative" is not absolute`, "absolute path"},
			filepath.Join(root, "nowhere.json"): {c.field + " " + root + "/nowhere.json does not exist", "existing"},
			filepath.Join(away, "nowhere.json"): {c.field + " " + away + "/nowhere.json is not under a root of this node", "--root " + away},
		} {
			_, _, err := h.buildRun(newRequest(func(r *client.RunRequest) { c.ask(r, path) }))
			var refused *client.Error
			if !errors.As(err, &refused) || !strings.HasPrefix(refused.Text, want[0]) || !strings.Contains(refused.Hint, want[1]) {
				t.Errorf("%s %s: %v", c.field, path, err)
			}
			if c.field == "mcp_config" && refused != nil && strings.Contains(refused.Hint, "name a directory") {
				t.Errorf("a file is no directory: %s", refused.Hint)
			}
		}
	}
}
