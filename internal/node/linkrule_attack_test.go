//go:build unix

package node

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/permission"
	"github.com/troupe-run/troupe/model"
)

// linkedDirectory is the directory of a run and the one above it, with links in both.
func linkedDirectory(t *testing.T) (above, dir string) {
	t.Helper()
	above, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(above, "work[1]")
	for _, name := range []string{"secrets", "vault", "docs", "src"} {
		writeText(t, "x", dir, name, "key")
	}
	for link, to := range map[string]string{"LINK": "work[1]", "TOP": ".", "work[1]/hidden": "vault", "work[1]/wide": ".", "work[1]/up": ".."} {
		if err := os.Symlink(to, filepath.Join(above, filepath.FromSlash(link))); err != nil {
			t.Fatal(err)
		}
	}
	return above, dir
}

// A rule that names a path through links is about the files that the links lead to; a link of the repository widens no
// rule that allows.
func TestAttackARuleThroughALinkHolds(t *testing.T) {
	t.Parallel()
	above, dir := linkedDirectory(t)
	agents := t.TempDir()
	for _, c := range []struct {
		list, rule, tool, path string
		want                   permission.Decision
	}{
		{"deny", "Edit(/" + above + "/LINK/secrets/**)", "write_file", "secrets/key", permission.Deny},
		{"deny", "Read(/" + above + "/LINK/secrets/**)", "read_file", "secrets/key", permission.Deny},
		{"deny", "Read(/" + above + "/LINK/**)", "read_file", "src/key", permission.Deny},
		{"deny", "Read(/" + above + "/TOP/*/secrets/**)", "read_file", "secrets/key", permission.Deny},
		{"deny", "Read(/" + above + "/LINK/hidden/**)", "read_file", "vault/key", permission.Deny},
		{"deny", "Read(/" + above + "/LINK/hidden/**)", "read_file", "hidden/key", permission.Deny},
		{"deny", "Read(./hidden/**)", "read_file", "vault/key", permission.Deny},
		{"deny", "Read(./secrets/**)", "read_file", "src/key", permission.Allow},
		{"ask", "Read(/" + above + "/LINK/secrets/**)", "read_file", "secrets/key", permission.Ask},
		{"allow", "Edit(/" + above + "/LINK/docs/**)", "write_file", "docs/new", permission.Allow},
		{"allow", "Edit(/" + above + "/LINK/docs/**)", "write_file", "src/new", permission.Ask},
		{"allow", "Edit(/" + above + "/LINK/wide/**)", "write_file", "src/new", permission.Ask},
		{"allow", "Edit(/" + above + "/LINK/up/**)", "write_file", "src/new", permission.Ask},
		{"allow", "Edit(wide/**)", "write_file", "src/new", permission.Ask},
		{"file", "Edit(/" + above + "/LINK/secrets/**)", "write_file", "secrets/key", permission.Deny},
		{"only", "Read(/" + above + "/LINK/src/**)", "read_file", "src/key", permission.Allow},
		{"only", "Read(/" + above + "/LINK/wide/**)", "read_file", "src/key", permission.Deny},
	} {
		lists := "tools: Read, Write, Edit\n"
		switch c.list {
		case "file":
			lists += "disallowedTools: ['" + c.rule + "']\n"
		case "only":
			lists = "tools: ['" + c.rule + "']\n"
		}
		writeText(t, "---\nname: local\ndescription: d\n"+lists+"---\nx\n", agents, "local.md")
		h := newBuildOnlyNode(dir, func(cfg *Config) {
			cfg.Roots = []string{dir, agents}
			rules := []spec.PermissionRule{}
			if r, err := agentfile.ParseRule(c.rule, "test", false); err == nil {
				rules = append(rules, r)
			}
			switch c.list {
			case "deny":
				cfg.Permissions.Deny = rules
			case "ask":
				cfg.Permissions.Ask = rules
			case "allow":
				cfg.Permissions.Allow = rules
			}
		})
		o, _, err := h.buildRun(newRequest(func(r *client.RunRequest) { r.Dir, r.Agent, r.Agents = dir, "local", agents }))
		if err != nil {
			t.Fatalf("%s %s: %v", c.list, c.rule, err)
		}
		class := model.Read
		if c.tool == "write_file" {
			class = model.Idempotent
		}
		if v := decideFor(t, o, "local", c.tool, `{"path":"`+c.path+`"}`, class); v.Decision != c.want {
			t.Errorf("%s %s, %s %s: %+v", c.list, c.rule, c.tool, c.path, v)
		}
	}
}
