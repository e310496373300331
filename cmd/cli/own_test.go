package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// toldModel is an Anthropic server that keeps what each agent was told first. The assistant delegates to lead,
// and lead to writer.
type toldModel struct {
	mu   sync.Mutex
	told map[string]toldRequest
}

// toldRequest is the part of a request that says what an agent may call.
type toldRequest struct {
	system string
	tools  map[string]string // descriptions
}

func (m *toldModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var q struct {
		System json.RawMessage
		Tools  []struct{ Name, Description string }
	}
	if err == nil {
		err = json.Unmarshal(body, &q)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	agent, to := "assistant", "lead"
	switch system := string(q.System); {
	case strings.Contains(system, "You lead."):
		agent, to = "lead", "writer"
	case strings.Contains(system, "You write."):
		agent, to = "writer", ""
	}
	first := toldRequest{string(q.System), map[string]string{}}
	for _, t := range q.Tools {
		first.tools[t.Name] = t.Description
	}
	m.mu.Lock()
	if _, known := m.told[agent]; !known {
		m.told[agent] = first
	}
	m.mu.Unlock()
	if strings.Contains(string(body), `"tool_result"`) {
		to = ""
	}
	w.Header().Set("Content-Type", "text/event-stream")
	event := func(kind, data string) { fmt.Fprintf(w, "event: %s\ndata: {\"type\":%q%s}\n\n", kind, kind, data) }
	event("message_start", `,"message":{"id":"m","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":10,"output_tokens":1}}`)
	stop := "end_turn"
	if to != "" {
		stop = "tool_use"
		event("content_block_start", `,"index":0,"content_block":{"type":"tool_use","id":"t0","name":"delegate","input":{}}`)
		args, _ := json.Marshal(fmt.Sprintf(`{"agent":%q,"task":"go"}`, to)) // a string always encodes
		event("content_block_delta", fmt.Sprintf(`,"index":0,"delta":{"type":"input_json_delta","partial_json":%s}`, args))
	} else {
		event("content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`)
		event("content_block_delta", fmt.Sprintf(`,"index":0,"delta":{"type":"text_delta","text":"done by %s"}`, agent))
	}
	event("content_block_stop", `,"index":0`)
	event("message_delta", fmt.Sprintf(`,"delta":{"stop_reason":%q},"usage":{"output_tokens":5}`, stop))
	event("message_stop", "")
}

// Without a flag a run has the agents, the skills, the MCP servers and the settings of the user. Each agent is
// told of what it may call, and of nothing else.
//
//behaviour:shows K15
func TestAUsersOwnAgentsSkillsAndSettingsNeedNoFlag(t *testing.T) {
	t.Parallel()
	m := &toldModel{told: map[string]toldRequest{}}
	server := httptest.NewServer(m)
	defer server.Close()
	skill := func(name, what string) string {
		return fmt.Sprintf("---\nname: %s\ndescription: %s\n---\nDo it.\n", name, what)
	}
	s := newTestHome(t, map[string]string{
		"config/troupe/troupe.yaml":          "model: anthropic/m\nallow_unpriced: [anthropic/m]\nmax_tokens: 9000000\nmax_turns: 7\n",
		"config/troupe/mcp.json":             `{"mcpServers": {"bank": {"command": "mcpserver", "args": ["pays a bill"]}}}`,
		"config/troupe/agents/lead.md":       "---\nname: lead\ndescription: Leads.\nskills: [plan]\nx-troupe: {delegates: [writer]}\n---\nYou lead.\n",
		"config/troupe/skills/plan/SKILL.md": skill("plan", "Makes a plan of steps."),
		".claude/agents/writer.md":           "---\nname: writer\ndescription: Writes texts.\ntools: Read\nskills: [style]\n---\nYou write.\n",
		".claude/agents/other.md":            "---\nname: other\ndescription: Counts beans.\n---\nYou count.\n",
		".claude/skills/style/SKILL.md":      skill("style", "Has the rules of style."),
		"work/text":                          "text",
	})
	cmd := s.command("run", "-q", "--dir", "work", "Go.") // --dir is the work, not the configuration
	cmd.Env = append(cmd.Env, "ANTHROPIC_BASE_URL="+server.URL, "ANTHROPIC_API_KEY=key")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || strings.TrimSpace(string(out)) != "done by assistant" {
		t.Fatalf("%v: %q\n%s", err, out, stderr.String())
	}
	if text, code := s.outputOf("describe", "last"); code != 0 || !strings.Contains(text, "at most 7 turns") || !strings.Contains(text, "anthropic/m") {
		t.Errorf("exit %d, not the user's settings:\n%s", code, text)
	}
	assertDescribesRequests(t, s, m)
	for agent, want := range map[string]struct{ tools, notTools, says, notSays []string }{
		"assistant": {tools: []string{"delegate", "read_file", "mcp__bank__read", "mcp__bank__pay"}, says: []string{"lead (Leads)", "writer (Writes texts)", "other (Counts beans)"}},
		"lead": {tools: []string{"delegate", "skill", "mcp__bank__read", "mcp__bank__pay"}, says: []string{"writer (Writes texts)", "Makes a plan of steps."},
			notSays: []string{"other (Counts beans)", "rules of style"}},
		"writer": {tools: []string{"read_file", "skill"}, notTools: []string{"delegate", "mcp__bank__read", "mcp__bank__pay", "shell", "write_file", "grep"}, says: []string{"rules of style"},
			notSays: []string{"Makes a plan", "other (Counts beans)", "lead (Leads)"}},
	} {
		told, known := m.told[agent]
		if !known {
			t.Errorf("%s was not called", agent)
			continue
		}
		all := told.system
		for _, description := range told.tools {
			all += "\n" + description
		}
		for _, name := range slices.Concat(want.tools, want.notTools) {
			if _, has := told.tools[name]; has != slices.Contains(want.tools, name) {
				t.Errorf("%s is told of %s: %v", agent, name, has)
			}
		}
		for _, text := range slices.Concat(want.says, want.notSays) {
			if strings.Contains(all, text) != slices.Contains(want.says, text) {
				t.Errorf("%s is told of %q: %v", agent, text, !slices.Contains(want.says, text))
			}
		}
	}
}

// assertDescribesRequests compares the tools that describe lists with those that the model was told of.
func assertDescribesRequests(t *testing.T, s testHome, m *toldModel) {
	t.Helper()
	out, code := s.outputOf("describe", "last", "-o", "json")
	var d struct {
		Description struct {
			Tools  []struct{ Name string }
			Agents []struct {
				Name  string
				Tools []string
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &d); err != nil || code != 0 || len(d.Description.Agents) != len(m.told) {
		t.Fatalf("exit %d, %v: %s", code, err, out)
	}
	all := map[string]bool{}
	for _, a := range d.Description.Agents {
		told := slices.Sorted(maps.Keys(m.told[a.Name].tools))
		if offered := slices.Sorted(slices.Values(a.Tools)); !slices.Equal(offered, told) {
			t.Errorf("%s: describe lists %v, and the request had %v", a.Name, offered, told)
		}
		for _, name := range told {
			all[name] = true
		}
	}
	var listed []string
	for _, tool := range d.Description.Tools {
		listed = append(listed, tool.Name)
	}
	if slices.Sort(listed); !slices.Equal(listed, slices.Sorted(maps.Keys(all))) {
		t.Errorf("describe lists the tools %v, and the requests had %v", listed, slices.Sorted(maps.Keys(all)))
	}
	if text, _ := s.outputOf("describe", "last"); !strings.Contains(text, "not begun; by its definition: ") {
		t.Errorf("agents that never began have no mark:\n%s", text)
	}
}

// The user's own CLAUDE.md is in the prompts of all agents, before that of the project, with what it imports.
func TestAUsersOwnInstructionsComeBeforeTheProjects(t *testing.T) {
	t.Parallel()
	m := &toldModel{told: map[string]toldRequest{}}
	server := httptest.NewServer(m)
	defer server.Close()
	s := newTestHome(t, map[string]string{
		"config/troupe/troupe.yaml":    "model: anthropic/m\nallow_unpriced: [anthropic/m]\nmax_tokens: 9000000\n",
		"config/troupe/agents/lead.md": "---\nname: lead\ndescription: Leads.\nx-troupe: {delegates: []}\n---\nYou lead.\n",
		".claude/CLAUDE.md":            "Always whistle. See @style.md, @~/.claude/more/deep.md, @../secret.md and @~/secret.md.\n",
		".claude/style.md":             "Write in rhymes.\n",
		".claude/more/deep.md":         "Dive deep.\n",
		"secret.md":                    "hidden words",
		"work/CLAUDE.md":               "Use tabs here.\n",
	})
	run := func(args ...string) (system, stderr string) {
		t.Helper()
		m.mu.Lock()
		m.told = map[string]toldRequest{}
		m.mu.Unlock()
		cmd := s.command(append([]string{"run"}, args...)...)
		cmd.Env = append(cmd.Env, "ANTHROPIC_BASE_URL="+server.URL, "ANTHROPIC_API_KEY=key")
		var text strings.Builder
		cmd.Stderr = &text
		if _, err := cmd.Output(); err != nil {
			t.Fatalf("%v\n%s", err, text.String())
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.told["lead"].system, text.String()
	}
	system, stderr := run("--dir", "work", "--agent", "lead", "Go.")
	at := -1
	for _, want := range []string{"Always whistle.", "Write in rhymes.", "Dive deep.", "Use tabs here."} {
		i := strings.Index(system, want)
		if i <= at {
			t.Errorf("%q is not in its place in %s", want, system)
		}
		at = i
	}
	if strings.Contains(system, "hidden words") {
		t.Error(system)
	}
	if !strings.Contains(stderr, "~/.claude/CLAUDE.md is part of the prompts") || !strings.Contains(stderr, "it imports style.md, more/deep.md") {
		t.Error(stderr)
	}
	if system, _ = run("--dir", "work", "--agent", "lead", "--no-agents-md", "Go."); strings.Contains(system, "whistle") || strings.Contains(system, "tabs") {
		t.Error(system)
	}
	if system, stderr = run("--dir", ".", "--agent", "lead", "Go."); strings.Contains(system, "whistle") || !strings.Contains(stderr, "~/.claude/CLAUDE.md: ignored: runs in this directory can change it") {
		t.Error(system, stderr)
	}
}
