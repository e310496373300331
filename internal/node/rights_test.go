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
	"github.com/troupe-run/troupe/internal/control"
)

// escalation is a run whose root delegates one call to a child with a looser file,
// or to one that delegates it on.
func escalation(t *testing.T, lead, call string, background bool) (dir string, r client.RunRequest) {
	t.Helper()
	dir, agents := t.TempDir(), t.TempDir()
	put(t, "---\nname: lead\ndescription: d\n"+lead+"\n---\nx\n", agents, "lead.md")
	put(t, "---\nname: middle\ndescription: d\n---\nx\n", agents, "middle.md")
	put(t, "---\nname: hand\ndescription: d\ntools: Bash(touch:*), Read, Write\n---\nx\n", agents, "hand.md")
	model := script(t, fmt.Sprintf(`
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
    - text: "{{last}}"
`, background, call))
	return dir, client.RunRequest{Agent: "lead", Agents: agents, Dir: dir, Model: model}
}

// A child whose file allows a command runs it unasked only if each of its ancestors
// may: a parent that has to ask has children that have to ask (E6, T7).
//
//behaviour:shows E6
func TestAttackAChildRunsACommandUnaskedUnderAParentThatMustAsk(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	for _, background := range []bool{false, true} {
		dir, r := escalation(t, "tools: Bash(echo:*), Read, Write, Agent", `{name: shell, args: {command: "touch made"}}`, background)
		h := start(t, t.TempDir(), func(c *Config) { c.Roots = []string{dir, r.Agents} })
		c := connect(t, h)
		id := begin(t, c, r)
		info, err := c.Wait(within(t), id)
		if err != nil {
			t.Fatal(err)
		}
		if info.State == control.Finished {
			t.Fatalf("background %v: nobody was asked: %s", background, info.Result.Text)
		}
		if _, err := os.Stat(filepath.Join(dir, "made")); err == nil {
			t.Errorf("background %v: it ran before a person agreed", background)
		}
		open, err := c.Questions(within(t))
		if err != nil || len(open) != 1 || !strings.Contains(open[0].Question, "touch made") {
			t.Fatalf("%+v %v", open, err)
		}
		if err := c.Answer(within(t), client.AnswerRequest{RunID: id, Agent: open[0].Agent, Query: open[0].Query, Decision: "deny"}); err != nil {
			t.Fatal(err)
		}
		await(t, c, id, event.KindRunFinished, 1)
		if _, err := os.Stat(filepath.Join(dir, "made")); err == nil {
			t.Errorf("background %v: it ran though a person denied it", background)
		}
	}
}

// If every ancestor has the rule, the user is not asked.
func TestAChildRunsACommandUnaskedThatItsAncestorsMayRun(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	dir, r := escalation(t, "tools: Bash(touch:*), Read, Write, Agent", `{name: shell, args: {command: "touch made"}}`, false)
	h := start(t, t.TempDir(), func(c *Config) { c.Roots = []string{dir, r.Agents} })
	c := connect(t, h)
	finished(t, c, begin(t, c, r), spec.Completed)
	if _, err := os.Stat(filepath.Join(dir, "made")); err != nil {
		t.Error(err)
	}
}

// A hook of the parent's file that denies a tool denies it to the children of its
// children (E6).
//
//behaviour:shows E6
func TestAttackAChildWritesAFileThatItsParentsHookDenies(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	lead := `tools: Bash(touch:*), Read, Write, Agent
hooks:
  PreToolUse:
    - matcher: Write
      hooks: [{type: command, command: "echo 'not by us' >&2; exit 2"}]`
	dir, r := escalation(t, lead, `{name: write_file, args: {path: made, content: x}}`, false)
	r.Yes = true
	h := start(t, t.TempDir(), func(c *Config) { c.Roots = []string{dir, r.Agents} })
	c := connect(t, h)
	info := finished(t, c, begin(t, c, r), spec.Completed)
	if !strings.Contains(info.Result.Text, "not by us") {
		t.Errorf("%s", info.Result.Text)
	}
	if _, err := os.Stat(filepath.Join(dir, "made")); err == nil {
		t.Error("it was written")
	}
}

// A command that is denied by name does not run behind others, whatever allows the
// rest: a file, the settings of the directory, the request (T6).
func TestAttackADeniedCommandRunsBehindAnother(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	all := func(r *client.RunRequest) { r.AllowedTools = []string{"Bash(*)"} }
	for _, command := range []string{"touch made", "echo hi && env sh -c 'touch made'", "echo $(touch made)", "X=touch; $X made"} {
		got, asked := shelled(t, command, "deny", func(r *client.RunRequest) {
			all(r)
			r.DisallowedTools = []string{"Bash(touch:*)"}
		})
		if unclear := strings.Contains(command, "$X"); asked != unclear || !strings.HasSuffix(got, "made=false") || !unclear && !strings.Contains(got, "denied by hook approval: a rule denies a command of it; the rules deny: touch:*") {
			t.Errorf("%s: %q, asked %v", command, got, asked)
		}
	}
	if got, asked := shelled(t, "touch made", "approve", all); asked != (approval.Unconfined(t.Context()) != "") || !strings.HasSuffix(got, "made=true") {
		t.Errorf("%q, asked %v", got, asked)
	}
}

// The commands that a file, the operator, the request and the directory deny add up, and no
// tool is removed.
func TestCommandsAreDeniedByAnybody(t *testing.T) {
	t.Parallel()
	dir, agents := t.TempDir(), t.TempDir()
	put(t, "---\nname: hand\ndescription: d\ntools: Bash, Read\ndisallowedTools: Bash(rm:*), Write(x)\n---\nx\n", agents, "hand.md")
	put(t, "---\nname: passer\ndescription: d\ndisallowedTools: Bash(dd:*)\n---\nx\n", agents, "passer.md")
	put(t, "tools: {shell: {deny: [curl]}}\n", dir, "troupe.yaml")
	h := doors(dir, func(c *Config) {
		c.Roots, c.Tools = []string{dir, agents}, []agentfile.ToolRule{{Name: "shell", Deny: []string{"git push:*"}}}
	})
	o, a, err := h.build(request(func(r *client.RunRequest) {
		r.Dir, r.Agents, r.Agent, r.DisallowedTools = dir, agents, "hand", []string{"Bash(touch:*)"}
	}))
	if err != nil {
		t.Fatal(err)
	}
	every := []string{"git push:*", "curl", "touch:*"}
	if l, _ := leaves(t, o, "hand"); !slices.Equal(l.Deny, append(slices.Clone(every), "rm:*")) || l.DenyOnly {
		t.Errorf("%+v", l)
	}
	if l, _ := leaves(t, o, "passer"); !slices.Equal(l.Deny, append(slices.Clone(every), "dd:*")) || !l.DenyOnly {
		t.Errorf("%+v", l)
	}
	if d := definition(t, o, "hand"); slices.Contains(d.Deny, "shell") || !slices.Contains(d.Deny, "write_file") || strings.Contains(strings.Join(a.Notes, "\n"), "without all of shell") {
		t.Errorf("%v %v", d.Deny, a.Notes)
	}
}
