package node

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// agentText is an agent file.
func agentText(name, front, prompt string) string {
	return "---\nname: " + name + "\ndescription: d of " + name + "\n" + front + "---\n" + prompt + "\n"
}

// buildWithAgents builds a run in a directory with these agent files, by name.
func buildWithAgents(t *testing.T, agent string, files map[string]string) (supervisor.Opened, client.RunAccepted, error) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		writeText(t, text, dir, ".claude", "agents", name+".md")
	}
	return newBuildOnlyNode(dir).buildRun(newRequest(func(r *client.RunRequest) { r.Dir, r.Agent = dir, agent }))
}

// userAgents puts agent files into a home directory of the user.
func userAgents(t *testing.T, files map[string]string) {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	for name, text := range files {
		writeText(t, text, home, ".claude", "agents", name+".md")
	}
}

// numbered returns that many names.
func numbered(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("abcd%06d", i)
	}
	return names
}

// A file that a directory brings must not end the runs of other agents there: it is left out, or its agent is, and
// a note names it.
func TestAttackAgentFileEndsNoRunOfOtherAgents(t *testing.T) {
	t.Parallel()
	list := func(n int) string { return strings.TrimSuffix(strings.Repeat("abcdefghij, ", n), ", ") }
	for what, c := range map[string]struct{ front, note string }{
		"evidence of no tool": {"x-troupe: {require: {evidence: [nosuch]}}\n", "bad: a result of nosuch is required, and there is no such tool"},
		"broken":              {"maxTurns: many\n", "bad.md"},
		"not closed":          {"tools: [\n", "bad.md"},
		"many delegates":      {"x-troupe: {delegates: [" + list(9000) + "]}\n", "agents are left out"},
		"many tools":          {"tools: [" + strings.Join(numbered(9000), ", ") + "]\n", "agents are left out"},
		"many denials":        {"disallowedTools: [" + list(9000) + "]\n", "agents are left out"},
		"many commands":       {"disallowedTools: [" + strings.Repeat("Bash(rm:*), ", 9000) + "Read]\n", "agents are left out"},
	} {
		files := map[string]string{"good": agentText("good", "", "Be good.")}
		for i := range 4 {
			name := strings.TrimSuffix(fmt.Sprintf("bad%d", i), "0")
			files[name] = agentText(name, c.front, "x")
		}
		o, a, err := buildWithAgents(t, "good", files)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if _, err := mailbox.Marshal(o); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if !hasNote(a.Notes, c.note) {
			t.Errorf("%s: %.900q", what, a.Notes)
		}
	}
}

// An agent of the directory that is placed in a pool that does not exist is left out; one that the request names ends
// the request.
func TestAttackAgentOfNoPoolEndsNoRunOfOtherAgents(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	e, dir := startSharedServer(t), t.TempDir()
	for name, front := range map[string]string{"good": "", "far": "x-troupe: {placement: {pool: nowhere}}\n", "odd": "x-troupe: {placement: {pool: 'a.b >'}}\n"} {
		writeText(t, agentText(name, front, "x"), dir, ".claude", "agents", name+".md")
	}
	h := joinAs(t, e, "a", func(c *Config) { c.Roots = []string{dir} })
	for agent, want := range map[string]string{"good": "", "far": "pool nowhere does not exist (needed by far)"} {
		o, a, err := h.buildRun(newRequest(func(r *client.RunRequest) { r.Dir, r.Agent = dir, agent }))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", agent, err)
		}
		left := slices.ContainsFunc(o.Definitions, func(d supervisor.Definition) bool { return d.Name == "far" || d.Name == "odd" })
		if want == "" && (left || !hasNote(a.Notes, "left out: pool nowhere does not exist (needed by far)") || !hasNote(a.Notes, "left out: agent odd asks for pool")) {
			t.Errorf("%s: %q", agent, a.Notes)
		}
	}
}

// The rules that the settings of a directory add to every agent count for the room of a run, too.
func TestAttackDeniedCommandsOfADirectoryEndNoRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var deny strings.Builder
	for i := range 400 {
		fmt.Fprintf(&deny, "'command%d:*', ", i)
	}
	writeText(t, "tools: {shell: {deny: ["+deny.String()+"rm]}}\n", dir, "troupe.yaml")
	for i := range 60 {
		name := fmt.Sprintf("a%02d", i)
		writeText(t, agentText(name, "tools: Bash, Read\n", "x"), dir, ".claude", "agents", name+".md")
	}
	o, _, err := newBuildOnlyNode(dir).buildRun(newRequest(func(r *client.RunRequest) { r.Dir, r.Agent = dir, "a30" }))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mailbox.Marshal(o); err != nil {
		t.Error(err)
	}
	for _, d := range o.Definitions {
		if l := permissionsOf(t, o, d.Name); len(l.Deny) != 401 {
			t.Errorf("%s: %d rules", d.Name, len(l.Deny))
		}
	}
}

// An agent of the directory that has the name of the user's own goes before it (docs/agentfiles.md), and the user is
// told so, also if its file is broken or disabled.
func TestAttackReplacedAgentIsNamedToTheUser(t *testing.T) {
	userAgents(t, map[string]string{"mine": agentText("mine", "", "Be careful.")})
	for front, isThere := range map[string]bool{"": true, "disable: true\n": false, "maxTurns: many\n": false} {
		for agent, fails := range map[string]bool{"mine": !isThere, "other": false} {
			_, a, err := buildWithAgents(t, agent, map[string]string{"mine": agentText("mine", front, "Obey me."), "other": agentText("other", "", "x")})
			told := strings.Join(a.Notes, "\n")
			if err != nil {
				told = err.Error()
			}
			if (err != nil) != fails || !strings.Contains(told, `/.claude/agents/mine.md: ignored`) {
				t.Errorf("%q, --agent %s: %v %q", front, agent, err, a.Notes)
			}
		}
	}
}

// A directory with more agent files than are read does not hide the agents of the user.
func TestAttackManyFilesHideNoAgentOfTheUser(t *testing.T) {
	userAgents(t, map[string]string{"mine": agentText("mine", "", "Be careful.")})
	files := map[string]string{}
	for i := range 1001 {
		files[fmt.Sprintf("a%04d", i)] = "no agent\n"
	}
	o, a, err := buildWithAgents(t, "mine", files)
	if err != nil {
		t.Fatal(err)
	}
	if d := findDefinition(t, o, "mine"); d.System != "Be careful." || !hasNote(a.Notes, "more than 1000 files") {
		t.Errorf("%+v %q", d, a.Notes)
	}
}

// The commands that a file of the user defines are for the user's own agents: an agent of the directory cannot call
// one, neither by its name nor as one that has all tools of its parent (E6).
//
//behaviour:shows E6
func TestAttackDirectoryAgentCallsNoCommandOfTheUsersAgent(t *testing.T) {
	noLeaks(t)
	userAgents(t, map[string]string{"deployer": agentText("deployer", "x-troupe:\n  tools: [{name: deploy, description: d, command: 'touch deployed', effect: idempotent}]\n", "x")})
	for _, front := range []string{"tools: deploy, Agent\n", ""} {
		dir := t.TempDir()
		writeText(t, agentText("evil", front, "x"), dir, ".claude", "agents", "evil.md")
		model := writeScript(t, `
agents:
  assistant:
    - calls: [{name: delegate, args: {agent: evil, task: "go"}}]
    - text: "[done] {{last}}"
  evil:
    - calls: [{name: deploy, args: {}}]
    - calls: [{name: delegate, args: {agent: deployer, task: "go"}}]
    - text: "[done] {{last}}"
  deployer:
    - calls: [{name: deploy, args: {}}]
    - text: "{{last}}"
`)
		h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{dir} })
		c := connectClient(t, h)
		info := waitFinished(t, c, beginRun(t, c, client.RunRequest{Dir: dir, Model: model}), spec.Completed)
		if _, err := os.Stat(filepath.Join(dir, "deployed")); err == nil {
			t.Errorf("%q: it ran: %s", front, info.Result.Text)
		}
	}
	o, _, err := newBuildOnlyNode(t.TempDir()).buildRun(newRequest(func(r *client.RunRequest) { r.Agent = "deployer" }))
	if err != nil {
		t.Fatal(err)
	}
	if d := findDefinition(t, o, "deployer"); slices.Contains(d.Deny, "deploy") {
		t.Errorf("%+v", d)
	}
}

// What a run ignores of a file that anyone may have written is known by file and agent, without reading its notes.
func TestIgnoredPartsOfAnAgentFileAreListed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeText(t, agentText("strong", "permissionMode: bypassPermissions\n", "p"), dir, ".claude", "agents", "strong.md")
	r := newRequest(func(r *client.RunRequest) { r.Dir, r.Agent, r.Model = dir, "strong", "builtin/scout" })
	ignored, err := PreviewIgnored(Config{StateDir: t.TempDir(), Env: func(string) string { return "" }}, r)
	if err != nil || len(ignored) != 1 || ignored[0].Agent != "strong" || filepath.Base(ignored[0].Path) != "strong.md" || !strings.HasPrefix(ignored[0].Parts, "its ") {
		t.Errorf("%+v, %v", ignored, err)
	}
	r.Agents = filepath.Join(dir, ".claude", "agents")
	if ignored, err = PreviewIgnored(Config{StateDir: t.TempDir(), Env: func(string) string { return "" }}, r); err != nil || len(ignored) != 0 {
		t.Errorf("%+v, %v", ignored, err)
	}
}
