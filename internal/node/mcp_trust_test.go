//go:build unix

package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/mcpclient"
	"github.com/troupe-run/troupe/internal/toolset"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// buildOpened returns the first entry that a run would have.
func buildOpened(t *testing.T, h *Node, r client.RunRequest) (supervisor.Opened, []string) {
	t.Helper()
	r.RunID, r.Prompt, r.Model = client.NewID(), "p", "builtin/scout"
	o, a, err := h.buildRun(r)
	if err != nil {
		t.Fatal(err)
	}
	return o, a.Notes
}

func classOf(t *testing.T, o supervisor.Opened, name string) model.Class {
	t.Helper()
	i := slices.IndexFunc(o.Tools, func(s model.ToolSpec) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("there is no tool %s", name)
	}
	return o.Tools[i].Class
}

//behaviour:shows C2
func TestOnlyTheOperatorsWordMakesAToolOfAnMCPServerMoreTrusted(t *testing.T) {
	t.Parallel()
	server := sdk.NewServer(&sdk.Implementation{Name: "stage", Version: "1"}, nil)
	server.AddTool(&sdk.Tool{Name: "look", InputSchema: json.RawMessage(`{"type":"object"}`), Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true}}, shoutTool)
	file := serverFile(t, filepath.Join(t.TempDir(), "mcp.json"), map[string]any{"stage": map[string]any{"url": serveMCP(t, server)}})
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, config.FileName), []byte("tools: {mcp__stage__look: {class: read}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := startNode(t, t.TempDir(), func(c *Config) { c.Servers, c.Roots = file, []string{dir} })
	o, notes := buildOpened(t, h, client.RunRequest{Dir: dir})
	if got := classOf(t, o, "mcp__stage__look"); got != model.Effect || !hasNote(notes, "mcp__stage__look stays effect; only the user's own") {
		t.Errorf("%s %q", got, notes)
	}
	trusting := startNode(t, t.TempDir(), func(c *Config) {
		c.Servers, c.Tools = file, []agentfile.ToolRule{{Name: "mcp__stage__look", Class: model.Read}}
	})
	if o, _ := buildOpened(t, trusting, client.RunRequest{}); classOf(t, o, "mcp__stage__look") != model.Read {
		t.Error("the operator was not heard")
	}
}

func TestAnMCPServerThatIsSlowDoesNotHoldARunUp(t *testing.T) {
	t.Parallel()
	file := serverFile(t, filepath.Join(t.TempDir(), "mcp.json"), map[string]any{
		"known": map[string]any{"command": "/bin/sleep", "args": []string{"300"}}, "unknown": map[string]any{"command": "/bin/sleep", "args": []string{"301"}}})
	h := startNode(t, t.TempDir(), func(c *Config) { c.Servers = file })
	all, _, err := ListServers(h.cfg, "", "", "")
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	toolSpec := model.ToolSpec{Name: "mcp__known__look", Class: model.Effect, Schema: `{"type":"object"}`}
	if err := allowedServers(h).Allow(all[0].Server, mcpclient.Listing{Offers: []mcpclient.Offer{{Raw: "look", Hash: "x", Spec: toolSpec}}}); err != nil {
		t.Fatal(err)
	}
	o, notes := buildOpened(t, h, client.RunRequest{})
	if classOf(t, o, "mcp__known__look") != model.Effect || len(o.Servers) != 1 || o.Servers[0].Name != "known" {
		t.Errorf("%+v", o.Servers)
	}
	if !hasNote(notes, "MCP server known: it has not answered within 6s; its tools are as they were allowed") ||
		!hasNote(notes, "MCP server unknown: it has not answered within 6s, so its tools are left out; `troupe mcp test unknown` waits longer") {
		t.Errorf("%q", notes)
	}
}

func TestAnMCPServerOfTheDirectoryCannotTakeTheNameOfTheOperators(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := serverFile(t, filepath.Join(t.TempDir(), "mcp.json"), map[string]any{"stage": map[string]any{"url": serveMCP(t, newShoutServer("shout"))}})
	config, starts := countingProgram(t)
	serverFile(t, filepath.Join(dir, mcpclient.FileName), map[string]any{"stage": config})
	h := startNode(t, t.TempDir(), func(c *Config) { c.Servers, c.Roots = file, []string{dir} })
	o, notes := buildOpened(t, h, client.RunRequest{Dir: dir})
	if len(o.Servers) != 1 || o.Servers[0].Source != file || len(starts()) > 0 || !hasNote(notes, "the MCP server stage is off: the one of the same name in "+file+" takes precedence") {
		t.Errorf("%+v %q", o.Servers, notes)
	}
}

// A server of the operator's own file does not run where a repository can place files:
// `python -m` and `npx` run what is in their directory (T14).
func TestAServerOfTheOperatorDoesNotRunInTheDirectoryOfTheRun(t *testing.T) {
	t.Parallel()
	dir, mark := t.TempDir(), filepath.Join(t.TempDir(), "ran")
	writeText(t, "#!/bin/sh\necho the repository > "+mark+"\n", dir, "server.sh")
	file := serverFile(t, filepath.Join(t.TempDir(), "mcp.json"), map[string]any{"x": map[string]any{"command": "/bin/sh", "args": []string{"server.sh"}}})
	h := startNode(t, t.TempDir(), func(c *Config) { c.Servers, c.Roots = file, []string{dir} })
	buildOpened(t, h, client.RunRequest{Dir: dir})
	if raw, err := os.ReadFile(mark); err == nil {
		t.Errorf("%s ran", raw)
	}
	for source, want := range map[string]string{"/home/me/.config/troupe/mcp.json": "/home/me/.config/troupe", "/src/repo/.mcp.json": "/src/repo",
		"/home/me/team/.mcp.json": "/home/me/team", "/src/repo/sub/.mcp.json": "/src/repo/sub"} {
		if got := ServerDir(source); got != want {
			t.Errorf("%s runs in %s", source, got)
		}
	}
}

// The name of a file does not decide who owns it: only the file of the run's directory is
// untrusted.
//
//behaviour:shows C2
func TestServerFileOutsideTheDirectoryIsTheOperators(t *testing.T) {
	t.Parallel()
	dir, team, mark := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "ran")
	writeText(t, "#!/bin/sh\necho the repository > "+mark+"\n", dir, "server.sh")
	definition := map[string]any{"x": map[string]any{"command": "/bin/sh", "args": []string{"server.sh"}}}
	named, brought := serverFile(t, filepath.Join(team, mcpclient.FileName), definition), serverFile(t, filepath.Join(dir, mcpclient.FileName), definition)
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{dir, team} })
	buildOpened(t, h, client.RunRequest{Dir: dir, MCPConfig: named})
	if raw, err := os.ReadFile(mark); err == nil {
		t.Errorf("%s ran", raw)
	}
	for file, own := range map[string]bool{named: true, brought: false, "": false} {
		all, _, err := ListServers(h.cfg, dir, file, "")
		if err != nil || len(all) == 0 || all[0].Own != own || all[0].Trusted != (file != "") {
			t.Errorf("%s: %+v %v", file, all, err)
		}
		def, err := h.toolset.CurrentServer(spec.Server{Name: "x", Source: all[0].Source, Hash: all[0].Hash(), Own: all[0].Own}, dir)
		if own != (err == nil) || !own && !errors.Is(err, mcpclient.ErrChanged) || def.Own != own { // the repository's is not approved
			t.Errorf("%s: a call finds %+v %v", file, def, err)
		}
	}
}

// A file that a run may write, because it lies in a root of the node where the run began,
// does not become the operator's on a node that has another root.
func TestAttackANodeWithOtherRootsTrustsAServerThatARunWrote(t *testing.T) {
	t.Parallel()
	dir, mine := t.TempDir(), t.TempDir()
	file := serverFile(t, filepath.Join(dir, "servers.json"), map[string]any{"x": map[string]any{"command": "/bin/sh", "args": []string{"server.sh"}}})
	node := func(root string) *Node {
		return newBuildOnlyNode(root, func(c *Config) { c.StateDir, c.requestsFromUser = t.TempDir(), false })
	}
	all, _, err := node(dir).toolset.FindServers(mine, dir, file, nil)
	if err != nil || len(all) != 1 || all[0].Own {
		t.Fatalf("%+v %v", all, err)
	}
	server := spec.Server{Name: "x", Source: file, Hash: all[0].Hash(), Own: all[0].Own}
	for _, root := range []string{dir, mine} {
		if def, err := node(root).toolset.CurrentServer(server, mine); !errors.Is(err, mcpclient.ErrChanged) || def.Own {
			t.Errorf("root %s: %+v %v", root, def, err)
		}
	}
}

// A remedy is run from anywhere, so it names the place of the server.
func TestARemedyNamesThePlaceOfTheServer(t *testing.T) {
	dir, away, config, home := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	definition := map[string]any{"x": map[string]any{"command": "true"}}
	named, users := serverFile(t, filepath.Join(away, "it's.json"), definition), serverFile(t, filepath.Join(config, "mcp.json"), definition)
	serverFile(t, filepath.Join(dir, mcpclient.FileName), definition)
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, "config"))
	const agent = "---\nname: %[1]s\ndescription: d\nmcpServers: [{%[1]s: {command: %[1]s}}]\n---\nYou are.\n"
	writeText(t, fmt.Sprintf(agent, "given"), away, "agents", "given.md")
	writeText(t, fmt.Sprintf(agent, "mine"), home, ".claude", "agents", "mine.md")
	writeText(t, fmt.Sprintf(agent, "x"), home, ".claude", "agents", "x.md")
	writeText(t, fmt.Sprintf(agent, "theirs"), dir, ".claude", "agents", "theirs.md")
	cfg := Config{Servers: users, Env: os.Getenv, StateDir: t.TempDir()}
	remedies := func(cfg Config, dir, named, agents string) map[string]MCPServer {
		all, _, err := ListServers(cfg, dir, named, agents)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]MCPServer{}
		for _, s := range all {
			got[s.Remedy("allow")] = s
		}
		return got
	}
	mine := "--agents " + filepath.Join(home, ".claude", "agents")
	for _, c := range []struct {
		where []string
		got   map[string]MCPServer
	}{
		{[]string{"x --mcp-config '" + strings.ReplaceAll(named, "'", `'\''`) + "'", "mine " + mine}, remedies(cfg, "", named, "")},
		{[]string{"x", "given --agents " + filepath.Join(away, "agents"), "mine " + mine, "x " + mine}, remedies(cfg, "", "", filepath.Join(away, "agents"))},
		{[]string{"x --dir " + dir, "mine " + mine, "x " + mine}, remedies(Config{Env: os.Getenv, StateDir: cfg.StateDir}, dir, "", "")},
	} {
		for _, want := range c.where {
			if _, ok := c.got["troupe mcp allow "+want]; !ok {
				t.Errorf("there is no remedy %s: %+v", want, c.got)
			}
		}
		for remedy := range c.got {
			if strings.Contains(remedy, "theirs") {
				t.Errorf("%s: an agent file of the directory has no servers", remedy)
			}
		}
	}
	all, _, err := ListServers(Config{Env: os.Getenv, StateDir: cfg.StateDir}, dir, "", "")
	if err != nil || all[0].Source != filepath.Join(dir, mcpclient.FileName) || !strings.Contains(all[0].Off, "it was never allowed") ||
		!slices.ContainsFunc(all, func(s MCPServer) bool {
			return s.Command == "x" && strings.Contains(s.Off, "`troupe mcp test x "+mine+"`")
		}) {
		t.Errorf("what only an agent of the user's has takes no name of others: %+v %v", all, err)
	}
}

// The answer to who begins a run fits a message, whatever its directory says.
func TestAFileOfTheDirectoryCannotFillTheAnswer(t *testing.T) {
	t.Parallel()
	servers := map[string]any{"long": map[string]any{"command": strings.Repeat("x", 500_000)}}
	for i := range 100 {
		keys := map[string]any{"command": "x"}
		for k := range 100 {
			keys[fmt.Sprint("key", k)] = 1
		}
		servers[fmt.Sprint("s", i)] = keys
	}
	dir := t.TempDir()
	serverFile(t, filepath.Join(dir, mcpclient.FileName), servers)
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{dir} })
	_, notes := buildOpened(t, h, client.RunRequest{Dir: dir})
	if size := len(strings.Join(notes, "")); len(notes) > toolset.NotesMax || size > toolset.NotesMax*toolset.NoteBytesMax {
		t.Errorf("%d notes of %d bytes", len(notes), size)
	}
	if !hasNote(notes, "and 89 more MCP servers are off; `troupe mcp list` shows them") || !hasNote(notes, "`troupe mcp allow long --dir "+dir+"` allows it") {
		t.Errorf("%q", notes)
	}
}
