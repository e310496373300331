package node

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/toolset"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// crewOf writes agent files and opens a run with them: each text is the front
// matter of an agent of that name.
func crewOf(t *testing.T, agents map[string]string, change ...func(*Config)) (supervisor.Opened, client.RunAccepted, error) {
	t.Helper()
	dir := t.TempDir()
	for name, front := range agents {
		text := "---\nname: " + name + "\ndescription: d\n" + front + "\n---\np\n"
		if err := os.WriteFile(filepath.Join(dir, name+".md"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return newBuildOnlyNode(dir, change...).buildRun(newRequest(func(r *client.RunRequest) {
		r.Agents, r.Dir, r.Model, r.MaxTokens = dir, dir, "", 100_000
	}))
}

func requireDefinition(t *testing.T, o supervisor.Opened, name string) supervisor.Definition {
	t.Helper()
	i := slices.IndexFunc(o.Definitions, func(d supervisor.Definition) bool { return d.Name == name })
	if i < 0 {
		t.Fatalf("there is no %s", name)
	}
	return o.Definitions[i]
}

// A file never grants more than it lists: a part of a tool grants that part, an empty list
// grants none, and both are recorded in the log.
//
//behaviour:shows E6
func TestAgentFileGrantsOnlyTheToolsItLists(t *testing.T) {
	t.Parallel()
	o, _, err := crewOf(t, map[string]string{
		"none":   "tools: []",
		"part":   "tools: Read, Write(src/**), Agent(none)",
		"whole":  "tools: 'Read, git_*'",
		"plan":   "permissionMode: plan",
		"nobody": "x-troupe: {delegates: []}",
		"denied": "disallowedTools: Write(src/**), git_*",
	})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := mailbox.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	o = supervisor.Opened{}
	if err := mailbox.Unmarshal(raw, &o); err != nil {
		t.Fatal(err)
	}
	if d := requireDefinition(t, o, "none"); d.Tools == nil || len(d.Tools) > 0 {
		t.Errorf("none: %#v", d.Tools)
	}
	if d := requireDefinition(t, o, "part"); !slices.Equal(d.Tools, []string{"read_file", "write_file", "delegate", "read_result"}) || !slices.Equal(d.Delegates, []string{"none"}) {
		t.Errorf("part: %v %v", d.Tools, d.Delegates)
	}
	if d := requireDefinition(t, o, "whole"); !slices.Contains(d.Tools, "git_log") || slices.Contains(d.Tools, "write_file") {
		t.Errorf("whole: %v", d.Tools)
	}
	plan := requireDefinition(t, o, "plan")
	for _, s := range o.Tools {
		if denied := slices.Contains(plan.Deny, s.Name); denied == (s.Class == model.Read || slices.Contains(toolset.LoopTools, s.Name)) {
			t.Errorf("plan: %s of class %s: denied is %v", s.Name, s.Class, denied)
		}
	}
	if !slices.Contains(plan.Deny, "write_file") || slices.Contains(plan.Deny, "class: not read") {
		t.Errorf("plan: %v", plan.Deny)
	}
	if d := requireDefinition(t, o, "nobody"); d.Delegates == nil || len(d.Delegates) > 0 {
		t.Errorf("nobody: %#v", d.Delegates)
	}
	if d := requireDefinition(t, o, "denied"); slices.Contains(d.Deny, "write_file") || d.Permissions == nil || len(d.Permissions.Deny) != 1 || !slices.Contains(d.Deny, "git_blame") {
		t.Errorf("denied: %v", d.Deny)
	}
}

// The model names of other tools are ranks of the provider that the run uses; a model that
// is not available here becomes the run's own, with one note.
func TestModelsOfFilesAreThoseOfTheRun(t *testing.T) {
	t.Parallel()
	agents := map[string]string{
		"small": "model: haiku\neffort: xhigh\ntemperature: 0.5", "again": "model: haiku", "exact": "model: claude-opus-4.6",
		"other": "model: gpt-5.4", "odd": "model: sonnet|opus", "own": "model: inherit\neffort: low", "chain": "x-troupe: {fallback: [opus, gpt-5.4]}",
	}
	o, a, err := crewOf(t, agents, withEnv("ANTHROPIC_API_KEY", "k"))
	if err != nil {
		t.Fatal(err)
	}
	small := requireDefinition(t, o, "small").Model
	if small.Name != "anthropic/claude-haiku-5-5" || small.Effort != "high" || *small.Temperature != 0.5 || !small.Price.Known {
		t.Errorf("%+v", small)
	}
	if m := requireDefinition(t, o, "exact").Model; m.Name != "anthropic/claude-opus-4-6" {
		t.Errorf("%+v", m)
	}
	if m := requireDefinition(t, o, "own").Model; m.Name != o.Model.Name || m.Effort != "low" {
		t.Errorf("%+v", m)
	}
	for _, name := range []string{"other", "odd", "chain"} {
		if m := requireDefinition(t, o, name).Model; m != nil {
			t.Errorf("%s: %+v", name, m)
		}
	}
	if f := requireDefinition(t, o, "chain").LoopOptions.Fallbacks; len(f) != 1 || f[0].Name != "anthropic/claude-opus-5-5" {
		t.Errorf("%+v", f)
	}
	notes := strings.Join(a.Notes, "\n")
	for text, times := range map[string]int{"model haiku of agent files is anthropic/claude-haiku-5-5": 1, `the model "gpt-5.4", which is not available on this node`: 1, `"sonnet|opus"`: 1} {
		if strings.Count(notes, text) != times {
			t.Errorf("%d times %q in:\n%s", strings.Count(notes, text), text, notes)
		}
	}
}

// One agent whose provider has no key here does not keep the others from work,
// unless it is asked for.
func TestAnAgentWithoutAKeyIsLeftOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "far.md"), []byte("---\nname: far\ndescription: d\nmodel: openai/gpt-x\n---\np\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := newBuildOnlyNode(dir)
	o, a, err := h.buildRun(newRequest(func(r *client.RunRequest) { r.Agents = dir }))
	if err != nil || !strings.Contains(strings.Join(a.Notes, "\n"), "far.md: left out: model: no credentials") {
		t.Errorf("%v %v", a.Notes, err)
	}
	if slices.ContainsFunc(o.Definitions, func(d supervisor.Definition) bool { return d.Name == "far" }) {
		t.Error("it is there")
	}
	if _, _, err := h.buildRun(newRequest(func(r *client.RunRequest) { r.Agents, r.Agent = dir, "far" })); err == nil || !strings.Contains(err.Error(), "OPENAI_API_KEY") {
		t.Error(err)
	}
}

func TestAgentShareIsAFractionOfTheRunBudget(t *testing.T) {
	t.Parallel()
	o, _, err := crewOf(t, map[string]string{"a": "x-troupe: {budget: {share: 0.2}}", "b": "x-troupe: {budget: {share: 0.5, tokens: 900}}"})
	if err != nil {
		t.Fatal(err)
	}
	a, b := requireDefinition(t, o, "a"), requireDefinition(t, o, "b")
	if a.Limits.Tokens != 20_000 || b.Limits.Tokens != 900 || !a.Carved || !b.Carved {
		t.Errorf("%+v %+v", a, b)
	}
}

// A large directory has more notes about its files than any user reads.
func TestLargeDirectoryShowsOnlyNotesOnTheRequestedAgent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range strings.Fields("a b c d e f g h i j") {
		writeFileAt(t, dir+"/"+name+".md", "---\ndescription: d\ncolor: red\n---\np\n")
	}
	_, a, err := newBuildOnlyNode(dir).buildRun(newRequest(func(r *client.RunRequest) { r.Agents, r.Agent = dir, "c" }))
	if err != nil || len(a.Notes) != 2 || !strings.HasSuffix(a.Notes[0], "c.md:3: color is kept and has no effect here") || !strings.HasPrefix(a.Notes[1], "9 notes on agent files") {
		t.Errorf("%v %v", a.Notes, err)
	}
}

// A user who requests an agent by the name of their own file learns that they get another
// one.
func TestAFileBehindABuiltInAgentIsNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeText(t, "---\nname: auditor\ndescription: mine\n---\nmine\n", dir, ".claude", "agents", "auditor.md")
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{dir} })
	file := filepath.Join(dir, ".claude", "agents", "auditor.md")
	if _, notes := buildOpened(t, h, client.RunRequest{Dir: dir, Agent: "auditor"}); !hasNote(notes, file+": ignored: the built-in agent auditor takes precedence; name its directory with --agents") {
		t.Errorf("%q", notes)
	}
	o, notes := buildOpened(t, h, client.RunRequest{Dir: dir, Agent: "auditor", Agents: filepath.Dir(file)})
	if hasNote(notes, "not used") || !strings.Contains(o.Definitions[slices.IndexFunc(o.Definitions, func(d supervisor.Definition) bool { return d.Name == "auditor" })].System, "mine") {
		t.Errorf("%q", notes)
	}
}
