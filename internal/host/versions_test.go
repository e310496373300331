package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agentfile"
	"github.com/troupe-run/troupe/bus"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/scout"
)

// told are the data of a run's events of one kind, as text.
func told(t *testing.T, c *client.Client, run, kind string) []string {
	t.Helper()
	var list []string
	ids, raw := paged(t, c, run)
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
	modelName, gate, agents := held(t)
	state := t.TempDir()
	first := start(t, state, func(c *Config) { c.Roots = []string{agents} })
	c := connect(t, first)
	id := begin(t, c, client.RunRequest{Model: modelName, Agents: agents, Agent: "boss"})
	await(t, c, id, "tool.started", 2)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	edited := "---\nname: boss\ndescription: Delegates.\nx-troupe:\n  delegates: [keeper]\n---\nDelegate with care.\n"
	if err := os.WriteFile(filepath.Join(agents, "boss.md"), []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
	openGate(t, gate)
	hook := agent.Hook{Name: "look", Point: agent.HookPostTool, Command: "true"}
	c = connect(t, start(t, state, func(c *Config) {
		c.Roots, c.ResumeAll, c.Hooks = []string{agents}, true, []agent.Hook{hook}
	}))
	await(t, c, id, "checkpoint.resume_unsafe", 1)
	open, err := c.Questions(within(t))
	if err != nil || len(open) != 1 || open[0].Agent != "root" || open[0].Reason != string(agent.ResumeUnsafe) || !strings.Contains(open[0].Question, "prompt (recorded ") {
		t.Fatalf("%+v %v", open, err)
	}
	if err := c.Answer(within(t), client.AnswerRequest{RunID: id, Query: open[0].Query, Decision: "approve"}); err != nil {
		t.Fatal(err)
	}
	await(t, c, id, "run.finished", 1)
	finished(t, c, id, agent.Completed)
	if halts := told(t, c, id, "checkpoint.resume_unsafe"); len(halts) != 1 {
		t.Errorf("%d agents were halted: the prompts of the others are as they were", len(halts))
	}
	hooks := 0
	for _, w := range told(t, c, id, "warning.raised") {
		if strings.Contains(w, "another hooks") {
			hooks++
		}
	}
	if hooks != 3 {
		t.Errorf("%d agents were told of the other hooks, not 3", hooks)
	}
}

// TestWhatANodeHasOtherwiseIsFoundByName: each version that a task records.
//
//behaviour:shows F4
func TestWhatANodeHasOtherwiseIsFoundByName(t *testing.T) {
	t.Parallel()
	dir := repository(t)
	put(t, "---\nname: review\ndescription: how to review\n---\nReview.\n", dir, ".agents", "skills", "review", "SKILL.md")
	crew := agentFiles(t, "far", "---\nname: far\ndescription: reaches far\ntools: Bash, WebFetch, Skill\n---\nReach.\n")
	h := start(t, t.TempDir(), func(c *Config) { c.Roots = []string{dir, crew} })
	o, _, err := h.build(client.RunRequest{RunID: client.NewID(), Prompt: "look", Dir: dir, Agents: crew, Agent: "far"})
	if err != nil {
		t.Fatal(err)
	}
	task := func() agent.Task {
		s := agent.Task{Name: "coordinator", Workspace: dir, Model: o.Model, Hashes: map[string]string{}}
		for k, v := range o.Hashes {
			s.Hashes[k] = v
		}
		s.Hashes[agent.RouteVersion], s.Hashes[agent.PromptVersion] = o.Hashes[agent.RouteOf(o.Model.Name)], version(scout.Agents()[0].System)
		return s
	}
	if found := h.differs(task()); len(found) > 0 {
		t.Errorf("nothing has changed: %v", found)
	}
	for key, change := range map[string]func(*agent.Task){
		agent.PromptVersion:              func(s *agent.Task) { s.Hashes[agent.PromptVersion] = "1" },
		agent.HooksVersion:               func(s *agent.Task) { delete(s.Hashes, agent.HooksVersion) },
		agent.RouteVersion:               func(s *agent.Task) { s.Model.Name = "nobody/nothing" },
		agent.ToolVersion + "grep":       func(s *agent.Task) { s.Hashes[agent.ToolVersion+"grep"] = "read:1" },
		agent.ToolVersion + "gone":       func(s *agent.Task) { s.Hashes[agent.ToolVersion+"gone"] = "read:1" },
		agent.ToolVersion + "shell":      func(s *agent.Task) { s.Hashes[agent.ToolVersion+"shell"] = "effect:1" },
		agent.ToolVersion + "http_get":   func(s *agent.Task) { s.Hashes[agent.ToolVersion+"http_get"] = "read:1" },
		agent.ToolVersion + "skill":      func(s *agent.Task) { s.Hashes[agent.ToolVersion+"skill"] = "read:1" },
		agent.ToolVersion + "write_file": func(s *agent.Task) { delete(s.Hashes, agent.ToolVersion+"write_file") },
		agent.WorkspaceVersion:           func(s *agent.Task) { s.Workspace = filepath.Join(dir, "nowhere") },
		"":                               func(s *agent.Task) { s.Source = filepath.Join(dir, "elsewhere.md") }, // of another machine: nothing is known
	} {
		s := task()
		change(&s)
		found := h.differs(s)
		if _, ok := found[key]; key != "" && (len(found) != 1 || !ok) || key == "" && len(found) > 0 {
			t.Errorf("%s: %v", key, found)
		}
	}
	old := task() // before these were in the record
	for _, name := range byName {
		delete(old.Hashes, agent.ToolVersion+name)
	}
	if found := h.differs(old); len(found) > 0 {
		t.Errorf("an older record: %v", found)
	}
	other := &Host{cfg: Config{Env: h.cfg.Env, Tools: []agentfile.ToolRule{{Name: "grep", Class: model.Effect}}}, models: h.models, names: bus.Names{}}
	if found := other.differs(task()); !strings.HasPrefix(found[agent.ToolVersion+"grep"], "effect:") || len(found) != 1 {
		t.Errorf("another class: %v", found)
	}
}
