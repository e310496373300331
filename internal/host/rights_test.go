package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/gateway"
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
func TestAttackAChildRunsACommandUnaskedUnderAParentThatMustAsk(t *testing.T) {
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
		if info.State == gateway.Finished {
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
		await(t, c, id, "run.finished", 1)
		if _, err := os.Stat(filepath.Join(dir, "made")); err == nil {
			t.Errorf("background %v: it ran though a person denied it", background)
		}
	}
}

// Where every ancestor has the rule, nobody is asked.
func TestAChildRunsACommandUnaskedThatItsAncestorsMayRun(t *testing.T) {
	noLeaks(t)
	dir, r := escalation(t, "tools: Bash(touch:*), Read, Write, Agent", `{name: shell, args: {command: "touch made"}}`, false)
	h := start(t, t.TempDir(), func(c *Config) { c.Roots = []string{dir, r.Agents} })
	c := connect(t, h)
	finished(t, c, begin(t, c, r), agent.Completed)
	if _, err := os.Stat(filepath.Join(dir, "made")); err != nil {
		t.Error(err)
	}
}

// A hook of the parent's file that denies a tool denies it to the children of its
// children (E6).
func TestAttackAChildWritesAFileThatItsParentsHookDenies(t *testing.T) {
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
	info := finished(t, c, begin(t, c, r), agent.Completed)
	if !strings.Contains(info.Result.Text, "not by us") {
		t.Errorf("%s", info.Result.Text)
	}
	if _, err := os.Stat(filepath.Join(dir, "made")); err == nil {
		t.Error("it was written")
	}
}
