package node

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/approval"
	"github.com/troupe-run/troupe/internal/config/agentfile"
)

// escalationRun is a run whose root delegates one call to a child with a looser file,
// or to one that delegates it on.
func escalationRun(t *testing.T, lead, call string, background bool) (dir string, r client.RunRequest) {
	t.Helper()
	dir, agents := t.TempDir(), t.TempDir()
	writeText(t, "---\nname: lead\ndescription: d\n"+lead+"\n---\nx\n", agents, "lead.md")
	writeText(t, "---\nname: middle\ndescription: d\n---\nx\n", agents, "middle.md")
	writeText(t, "---\nname: hand\ndescription: d\ntools: Bash(touch:*), Read, Write\n---\nx\n", agents, "hand.md")
	model := writeScript(t, fmt.Sprintf(`
agents:
  lead:
    - calls: [{name: delegate, args: {agent: middle, task: "go", background: %t}}]
    - text: "{{last}}"
    - text: "{{last}}"
  middle:
    - calls: [{name: delegate, args: {agent: hand, task: "go"}}]
    - text: "{{last}}"
  hand:
    - calls: [%s]
    - text: "[done] {{last}}"
`, background, call))
	return dir, client.RunRequest{Agent: "lead", Agents: agents, Dir: dir, Model: model}
}

// A child whose file allows a command runs it unasked only if each of its ancestors
// may: a parent that has to ask has children that have to ask, and so has a parent that names no
// tools, which may only pass the shell on (E6, T7).
//
//behaviour:shows E6
func TestAttackChildMustAskWhereItsParentMustAsk(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	for lead, background := range map[string]bool{"tools: Bash(echo:*), Read, Write, Agent": false, "tools: Bash, Agent": true, "tools: '*'": false} {
		dir, r := escalationRun(t, lead, `{name: shell, args: {command: "touch made"}}`, background)
		h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{dir, r.Agents} })
		c := connectClient(t, h)
		id := beginRun(t, c, r)
		info, err := c.Wait(testContext(t), id)
		if err != nil {
			t.Fatal(err)
		}
		if info.State == client.RunFinished {
			t.Fatalf("%s: nobody was asked: %s", lead, info.Result.Text)
		}
		if _, err := os.Stat(filepath.Join(dir, "made")); err == nil {
			t.Errorf("%s: it ran before a person agreed", lead)
		}
		open, err := c.Questions(testContext(t))
		if err != nil || len(open) != 1 || !strings.Contains(open[0].Question, "touch made") {
			t.Fatalf("%+v %v", open, err)
		}
		if err := c.Answer(testContext(t), client.AnswerRequest{RunID: id, Agent: open[0].Agent, Query: open[0].Query, Decision: "deny"}); err != nil {
			t.Fatal(err)
		}
		awaitEvents(t, c, id, event.KindRunFinished, 1)
		if _, err := os.Stat(filepath.Join(dir, "made")); err == nil {
			t.Errorf("%s: it ran though a person denied it", lead)
		}
	}
}

// If every ancestor has the rule, the user is not asked.
func TestAChildRunsACommandUnaskedThatItsAncestorsMayRun(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	dir, r := escalationRun(t, "tools: Bash(touch:*), Read, Write, Agent", `{name: shell, args: {command: "touch made"}}`, false)
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{dir, r.Agents} })
	c := connectClient(t, h)
	waitFinished(t, c, beginRun(t, c, r), spec.Completed)
	if _, err := os.Stat(filepath.Join(dir, "made")); err != nil {
		t.Error(err)
	}
}

// checkHookDenies checks that a hook of the parent denies the file `made` to a run that approves all writes.
func checkHookDenies(t *testing.T, dir string, r client.RunRequest) {
	t.Helper()
	noLeaks(t)
	r.Yes = true
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{dir, r.Agents} })
	c := connectClient(t, h)
	info := waitFinished(t, c, beginRun(t, c, r), spec.Completed)
	if !strings.Contains(info.Result.Text, "not by us") {
		t.Errorf("%s", info.Result.Text)
	}
	if _, err := os.Stat(filepath.Join(dir, "made")); err == nil {
		t.Error("it was written")
	}
}

// A hook of the parent's file that denies a tool denies it to the children of its
// children (E6).
//
//behaviour:shows E6
func TestAttackChildWritesNoFileThatItsParentsHookDenies(t *testing.T) {
	t.Parallel()
	lead := `tools: Bash(touch:*), Read, Write, Agent
hooks:
  PreToolUse:
    - matcher: Write
      hooks: [{type: command, command: "echo 'not by us' >&2; exit 2"}]`
	dir, r := escalationRun(t, lead, `{name: write_file, args: {path: made, content: x}}`, false)
	checkHookDenies(t, dir, r)
}

// A parent's hook judges what would run: a hook of the child cannot change the arguments after
// the parent's hook has passed them (E6).
//
//behaviour:shows E6
func TestAttackParentsHookJudgesWhatAChildsHookChanged(t *testing.T) {
	t.Parallel()
	dir, r := escalationRun(t, `tools: Write, Agent
hooks:
  PreToolUse:
    - matcher: Write
      hooks: [{type: command, command: "grep -q '\"path\":\"made\"' && { echo 'not by us' >&2; exit 2; }; exit 0"}]`,
		`{name: write_file, args: {path: other, content: x}}`, false)
	writeText(t, `---
name: hand
description: d
tools: Write
hooks:
  PreToolUse:
    - matcher: Write
      hooks: [{type: command, command: "echo '{\"hookSpecificOutput\":{\"updatedInput\":{\"path\":\"made\",\"content\":\"x\"}}}'"}]
---
x
`, r.Agents, "hand.md")
	checkHookDenies(t, dir, r)
}

// Two hooks that each change the arguments after the other do not hold up the call for ever: it is denied.
func TestAttackHooksThatChangeArgumentsInTurnsEndWithADenial(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	hook := func(path string) string {
		return fmt.Sprintf(`tools: Write, Agent
hooks:
  PreToolUse:
    - matcher: Write
      hooks: [{type: command, command: "echo '{\"hookSpecificOutput\":{\"updatedInput\":{\"path\":\"%s\",\"content\":\"x\"}}}'"}]`, path)
	}
	dir, r := escalationRun(t, hook("one"), `{name: write_file, args: {path: made, content: x}}`, false)
	writeText(t, "---\nname: hand\ndescription: d\n"+hook("two")+"\n---\nx\n", r.Agents, "hand.md")
	r.Yes = true
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{dir, r.Agents} })
	c := connectClient(t, h)
	info := waitFinished(t, c, beginRun(t, c, r), spec.Completed)
	if !strings.Contains(info.Result.Text, "denied: hooks change its arguments again and again") {
		t.Errorf("%s", info.Result.Text)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v %v", left, err)
	}
}

// A command that is denied by name does not run behind others, whatever allows the
// rest: a file, the settings of the directory, the request (T6).
func TestAttackDeniedCommandBehindAnotherIsRefused(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	all := func(r *client.RunRequest) { r.AllowedTools = []string{"Bash(*)"} }
	for _, command := range []string{"touch made", "echo hi && env sh -c 'touch made'", "echo $(touch made)", "X=touch; $X made"} {
		got, asked := runShellCommand(t, command, "deny", func(r *client.RunRequest) {
			all(r)
			r.DisallowedTools = []string{"Bash(touch:*)"}
		})
		if unclear := strings.Contains(command, "$X"); asked != unclear || !strings.HasSuffix(got, "made=false") || !unclear && !strings.Contains(got, "denied: the rule shell(touch:*) (--disallowed-tools) denies it") {
			t.Errorf("%s: %q, asked %v", command, got, asked)
		}
	}
	if got, asked := runShellCommand(t, "touch made", "approve", all); asked != (approval.MissingProtections(t.Context()) != "") || !strings.HasSuffix(got, "made=true") {
		t.Errorf("%q, asked %v", got, asked)
	}
}

// The commands that a file, the operator, the request and the directory deny add up, and no
// tool is removed.
func TestDeniedCommandsOfAllSourcesAddUp(t *testing.T) {
	t.Parallel()
	dir, agents := t.TempDir(), t.TempDir()
	writeText(t, "---\nname: hand\ndescription: d\ntools: Bash, Read\ndisallowedTools: Bash(rm:*), Write(x)\n---\nx\n", agents, "hand.md")
	writeText(t, "---\nname: passer\ndescription: d\ndisallowedTools: Bash(dd:*)\n---\nx\n", agents, "passer.md")
	writeText(t, "tools: {shell: {deny: [curl]}}\n", dir, "troupe.yaml")
	h := newBuildOnlyNode(dir, func(c *Config) {
		c.Roots, c.Tools = []string{dir, agents}, []agentfile.ToolRule{{Name: "shell", Deny: []string{"git push:*"}}}
	})
	o, a, err := h.buildRun(newRequest(func(r *client.RunRequest) {
		r.Dir, r.Agents, r.Agent, r.DisallowedTools = dir, agents, "hand", []string{"Bash(touch:*)"}
	}))
	if err != nil {
		t.Fatal(err)
	}
	every := []string{"shell(git push:*)", "shell(touch:*)", "shell(curl)"}
	if p := permissionsOf(t, o, "hand"); !slices.Equal(ruleTexts(p.Deny), append(slices.Clone(every), "shell(rm:*)", "write_file(x)")) || p.ShellForChildren {
		t.Errorf("%+v", p)
	}
	if p := permissionsOf(t, o, "passer"); !slices.Equal(ruleTexts(p.Deny), append(slices.Clone(every), "shell(dd:*)")) || !p.ShellForChildren {
		t.Errorf("%+v", p)
	}
	if d := findDefinition(t, o, "hand"); slices.Contains(d.Deny, "shell") || slices.Contains(d.Deny, "write_file") || strings.Contains(strings.Join(a.Notes, "\n"), "without all of shell") {
		t.Errorf("%v %v", d.Deny, a.Notes)
	}
}
