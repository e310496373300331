package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/investigator"
	"github.com/troupe-run/troupe/internal/runspec"
	"github.com/troupe-run/troupe/internal/toolset"
	"github.com/troupe-run/troupe/internal/workspace"
	"github.com/troupe-run/troupe/model"
)

// eventsOfKind are the data of a run's events of one kind, as text.
func eventsOfKind(t *testing.T, c *client.Client, run, kind string) []string {
	t.Helper()
	var list []string
	ids, raw := pagedEvents(t, c, run)
	for _, id := range ids {
		if strings.Contains(raw[id], `"kind":"`+kind+`"`) {
			list = append(list, raw[id])
		}
	}
	return list
}

// TestARunDoesNotGoOnWithAnotherPrompt: the agent file was edited, and its tool
// got another class at the operator's word, while the node was away. The run
// asks a person before it goes on, and then goes on by its record (F4).
//
//behaviour:shows F4
func TestARunDoesNotGoOnWithAnotherPrompt(t *testing.T) {
	t.Parallel()
	modelName, gate, agents := heldFamily(t)
	state := t.TempDir()
	first := startNode(t, state, func(c *Config) { c.Roots = []string{agents} })
	c := connectClient(t, first)
	id := beginRun(t, c, client.RunRequest{Model: modelName, Agents: agents, Agent: "boss"})
	awaitEvents(t, c, id, event.KindToolStarted, 2)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	edited := "---\nname: boss\ndescription: Delegates.\nx-troupe:\n  delegates: [keeper]\n---\nDelegate with care.\n"
	if err := os.WriteFile(filepath.Join(agents, "boss.md"), []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
	openGate(t, gate)
	hook := spec.Hook{Name: "look", Point: spec.HookPostTool, Command: "true"}
	c = connectClient(t, startNode(t, state, func(c *Config) {
		c.Roots, c.ResumeAll, c.Hooks = []string{agents}, true, []spec.Hook{hook}
	}))
	awaitEvents(t, c, id, event.KindCheckpointResumeUnsafe, 1)
	open, err := c.Questions(testContext(t))
	if err != nil || len(open) != 1 || open[0].Agent != "root" || open[0].Reason != string(spec.ResumeUnsafe) || !strings.Contains(open[0].Question, "prompt (recorded ") {
		t.Fatalf("%+v %v", open, err)
	}
	if err := c.Answer(testContext(t), client.AnswerRequest{RunID: id, Query: open[0].Query, Decision: "approve"}); err != nil {
		t.Fatal(err)
	}
	awaitEvents(t, c, id, event.KindRunFinished, 1)
	waitFinished(t, c, id, spec.Completed)
	if halts := eventsOfKind(t, c, id, event.KindCheckpointResumeUnsafe); len(halts) != 1 {
		t.Errorf("%d agents were halted: the prompts of the others are as they were", len(halts))
	}
	hooks := 0
	for _, w := range eventsOfKind(t, c, id, event.KindWarningRaised) {
		if strings.Contains(w, "another hooks") {
			hooks++
		}
	}
	if hooks != 3 {
		t.Errorf("%d agents were told of the other hooks, not 3", hooks)
	}
}

// TestDriftIsFoundByName: each version that a task records.
//
//behaviour:shows F4
func TestDriftIsFoundByName(t *testing.T) {
	t.Parallel()
	dir := newRepository(t)
	writeText(t, "---\nname: review\ndescription: how to review\n---\nReview.\n", dir, ".agents", "skills", "review", "SKILL.md")
	crew := agentFiles(t, "far", "---\nname: far\ndescription: reaches far\ntools: Bash, WebFetch, Skill\n---\nReach.\n")
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{dir, crew} })
	o, _, err := h.buildRun(client.RunRequest{RunID: client.NewID(), Prompt: "look", Dir: dir, Agents: crew, Agent: "far"})
	if err != nil {
		t.Fatal(err)
	}
	task := func() spec.Task {
		s := spec.Task{Name: "coordinator", Workspace: dir, Model: o.Model, Hashes: map[string]string{}}
		for k, v := range o.Hashes {
			s.Hashes[k] = v
		}
		s.Hashes[spec.RouteVersion], s.Hashes[spec.PromptVersion] = o.Hashes[spec.RouteOf(o.Model.Name)], runspec.HashVersion(investigator.BuiltinAgents()[0].System)
		return s
	}
	if found := h.builder.FindDifferences(task()); len(found) > 0 {
		t.Errorf("nothing has changed: %v", found)
	}
	for key, change := range map[string]func(*spec.Task){
		spec.PromptVersion:              func(s *spec.Task) { s.Hashes[spec.PromptVersion] = "1" },
		spec.HooksVersion:               func(s *spec.Task) { delete(s.Hashes, spec.HooksVersion) },
		spec.RouteVersion:               func(s *spec.Task) { s.Model.Name = "nobody/nothing" },
		spec.ToolVersion + "grep":       func(s *spec.Task) { s.Hashes[spec.ToolVersion+"grep"] = "read:1" },
		spec.ToolVersion + "gone":       func(s *spec.Task) { s.Hashes[spec.ToolVersion+"gone"] = "read:1" },
		spec.ToolVersion + "shell":      func(s *spec.Task) { s.Hashes[spec.ToolVersion+"shell"] = "effect:1" },
		spec.ToolVersion + "http_get":   func(s *spec.Task) { s.Hashes[spec.ToolVersion+"http_get"] = "read:1" },
		spec.ToolVersion + "skill":      func(s *spec.Task) { s.Hashes[spec.ToolVersion+"skill"] = "read:1" },
		spec.ToolVersion + "write_file": func(s *spec.Task) { delete(s.Hashes, spec.ToolVersion+"write_file") },
		spec.WorkspaceVersion:           func(s *spec.Task) { s.Workspace = filepath.Join(dir, "nowhere") },
		"":                              func(s *spec.Task) { s.Source = filepath.Join(dir, "elsewhere.md") }, // another machine: nothing is known
	} {
		s := task()
		change(&s)
		found := h.builder.FindDifferences(s)
		if _, ok := found[key]; key != "" && (len(found) != 1 || !ok) || key == "" && len(found) > 0 {
			t.Errorf("%s: %v", key, found)
		}
	}
	old := task() // before these were in the record
	for _, name := range toolset.NamedOnly {
		delete(old.Hashes, spec.ToolVersion+name)
	}
	if found := h.builder.FindDifferences(old); len(found) > 0 {
		t.Errorf("an older record: %v", found)
	}
	other := &Node{cfg: Config{Env: h.cfg.Env, Tools: []agentfile.ToolRule{{Name: "grep", Class: model.Effect}}}, routes: h.routes, directories: &workspace.Directories{}, names: names.Names{}}
	other.assembleBuilders()
	if found := other.builder.FindDifferences(task()); !strings.HasPrefix(found[spec.ToolVersion+"grep"], "effect:") || len(found) != 1 {
		t.Errorf("another class: %v", found)
	}
	// What somebody writes into the directory later neither hides a difference nor makes one.
	for _, file := range []string{"tools: [", "tools: {grep: {class: irreversible}}\n"} {
		writeText(t, file, dir, "troupe.yaml")
		if found := h.builder.FindDifferences(task()); len(found) > 0 {
			t.Errorf("%q makes a difference: %v", file, found)
		}
		if found := other.builder.FindDifferences(task()); !strings.HasPrefix(found[spec.ToolVersion+"grep"], "effect:") || len(found) != 1 {
			t.Errorf("%q: another class: %v", file, found)
		}
	}
}
