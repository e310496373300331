package node

import (
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/routes"
	"github.com/troupe-run/troupe/internal/workspace"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// newBuildOnlyNode are a host that only builds runs.
func newBuildOnlyNode(dir string, change ...func(*Config)) *Node {
	cfg := Config{Roots: []string{dir}, Env: func(string) string { return "" }, requestsFromUser: true}.withDefaults()
	for _, c := range change {
		c(&cfg)
	}
	h := &Node{cfg: cfg, routes: cfg.newRoutes(routes.Recordings{}), directories: &workspace.Directories{}}
	h.assembleBuilders()
	return h
}

// withEnv is an environment of these variables.
func withEnv(pairs ...string) func(*Config) {
	return func(c *Config) {
		c.Env = func(name string) string {
			for i := 0; i+1 < len(pairs); i += 2 {
				if pairs[i] == name {
					return pairs[i+1]
				}
			}
			return ""
		}
	}
}

func newRequest(change func(*client.RunRequest)) client.RunRequest {
	r := client.RunRequest{RunID: client.NewID(), Prompt: "p", Model: "builtin/scout"}
	change(&r)
	return r
}

// The options of a request take precedence over the defaults, its flags over its loop
// options.
func TestRequestLoopOptionsOverrideDefaults(t *testing.T) {
	t.Parallel()
	const schema = `{"type":"object","required":["a"]}`
	o, a, err := newBuildOnlyNode(t.TempDir()).buildRun(newRequest(func(r *client.RunRequest) {
		r.Fallback = []string{"ollama/small", "builtin/scout"}
		r.RequireTool = []string{"delegate=found", "Task"}
		r.JSONSchema = json.RawMessage(schema)
		r.UseTokens = 9000
		r.LoopOptions = &spec.LoopOptions{ToolRetries: spec.Off, Continue: spec.Continue{Tokens: 1, Small: 100}, Require: spec.Require{Tries: 4},
			Breaker: spec.Breaker{Failures: 5}, Fallbacks: []spec.Model{{Name: "ollama/other"}}}
	}))
	if err != nil {
		t.Fatal(err)
	}
	m := o.LoopOptions
	want := spec.DefaultLoopOptions()
	want.Watch, want.LimitNotes = spec.Watch{Of: 1}, spec.LimitNotes{} // off: the model follows rules
	want.ToolRetries, want.Continue, want.Breaker = spec.Off, spec.Continue{Tokens: 9000, Small: 100, Percent: 90, Rounds: 3}, spec.Breaker{Failures: 5}
	want.Require = spec.Require{Schema: schema, Tries: 4, Evidence: []spec.Evidence{{Tool: "delegate", Contains: "found"}, {Tool: "delegate"}}}
	if len(m.Fallbacks) != 2 || m.Fallbacks[0].Name != "ollama/small" || !m.Fallbacks[0].Price.Known || m.Fallbacks[1].Name != "builtin/scout" {
		t.Errorf("fallbacks %+v", m.Fallbacks)
	}
	if m.Fallbacks = nil; !reflect.DeepEqual(m, want) {
		t.Errorf("%+v\nwant %+v", m, want)
	}
	if len(a.Notes) > 0 {
		t.Errorf("%v", a.Notes)
	}
}

// Options that could not be enforced are refused with a reason.
//
//behaviour:shows A27
func TestInvalidLoopOptionsAreRefused(t *testing.T) {
	t.Parallel()
	h := newBuildOnlyNode(t.TempDir())
	for want, change := range map[string]func(*client.RunRequest){
		`fallback "x": `:                func(r *client.RunRequest) { r.Fallback = []string{"x"} },
		`fallback: no model is named`:   func(r *client.RunRequest) { r.Fallback = []string{""} },
		"no credentials for openai/gpt": func(r *client.RunRequest) { r.Fallback = []string{"openai/gpt"} },
		"4 fallbacks, at most 3":        func(r *client.RunRequest) { r.Fallback = []string{"a", "b", "c", "d"} },
		"a result of grepp is required": func(r *client.RunRequest) { r.RequireTool = []string{"grepp"} },
		"require.evidence has no tool":  func(r *client.RunRequest) { r.RequireTool = []string{"=x"} },
		"it is not a JSON object":       func(r *client.RunRequest) { r.JSONSchema = json.RawMessage(`"{}"`) },
		"leads back to itself":          func(r *client.RunRequest) { r.JSONSchema = json.RawMessage(`{"$ref":"#"}`) },
		"bytes, at most 32768": func(r *client.RunRequest) {
			r.JSONSchema = json.RawMessage(`{"title":"` + strings.Repeat("x", 40000) + `"}`)
		},
		"continue.tokens is -2":                   func(r *client.RunRequest) { r.UseTokens = -2 },
		"a request cannot bring hooks or prompts": func(r *client.RunRequest) { r.LoopOptions = &spec.LoopOptions{Hooks: make([]spec.Hook, 1)} },
		"watch.of is 1000":                        func(r *client.RunRequest) { r.LoopOptions = &spec.LoopOptions{Watch: spec.Watch{Of: 1000}} },
		`context.model "nobody/x": model: not a model name`: func(r *client.RunRequest) {
			r.LoopOptions = &spec.LoopOptions{Context: spec.Context{Model: &spec.Model{Name: "nobody/x"}}}
		},
	} {
		_, _, err := h.buildRun(newRequest(change))
		var refused *client.Error
		if !errors.As(err, &refused) || refused.Code != client.CodeBad || refused.Hint == "" || !strings.Contains(refused.Text, want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// A fallback with an unknown price is left out under a limit in money, and a paid one
// brings the limit of a paid model.
//
//behaviour:shows A15
func TestFallbacksAreCoveredByTheLimitInMoney(t *testing.T) {
	t.Parallel()
	gateway := withEnv("OPENAI_BASE_URL", "https://gateway.example/v1", "ANTHROPIC_API_KEY", "k")
	h := newBuildOnlyNode(t.TempDir(), gateway)
	o, a, err := h.buildRun(newRequest(func(r *client.RunRequest) {
		r.MaxBudgetUSD, r.Fallback = 0.5, []string{"openai/unlisted", "anthropic/claude-sonnet-5-5"}
	}))
	if err != nil || len(o.LoopOptions.Fallbacks) != 1 || o.LoopOptions.Fallbacks[0].Name != "anthropic/claude-sonnet-5-5" || o.LoopOptions.Fallbacks[0].Output == 0 {
		t.Errorf("%+v %v", o.LoopOptions.Fallbacks, err)
	}
	if len(a.Notes) != 1 || !strings.Contains(a.Notes[0], "fallback openai/unlisted is left out: its price is unknown") {
		t.Errorf("%v", a.Notes)
	}
	o, _, err = h.buildRun(newRequest(func(r *client.RunRequest) { r.Fallback = []string{"anthropic/claude-sonnet-5-5"} }))
	if err != nil || o.Limits.Nano != PaidNano {
		t.Errorf("%+v %v", o.Limits, err)
	}
	o, _, err = h.buildRun(newRequest(func(r *client.RunRequest) { r.Fallback, r.MaxTokens = []string{"openai/gpt-6-sol"}, 5000 }))
	if err != nil || o.Limits.Nano != 0 || len(o.LoopOptions.Fallbacks) != 1 {
		t.Errorf("%+v %v", o, err)
	}
}

func findDefinition(t *testing.T, o supervisor.Opened, name string) supervisor.Definition {
	t.Helper()
	i := slices.IndexFunc(o.Definitions, func(d supervisor.Definition) bool { return d.Name == name })
	if i < 0 {
		t.Fatalf("no agent %s", name)
	}
	return o.Definitions[i]
}

// An agent file says it for its agent, with models of the node's choice.
func TestAnAgentFileSaysHowItsAgentBehaves(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(own string) {
		writeText(t, "---\nname: clerk\ndescription: d\nmodel: ollama/m\nx-troupe:\n  "+strings.ReplaceAll(own, "\n", "\n  ")+"\n---\nx\n", dir+"/clerk.md")
	}
	ask := func() (supervisor.Opened, client.RunAccepted, error) {
		return newBuildOnlyNode(dir).buildRun(newRequest(func(r *client.RunRequest) { r.Agents, r.Agent, r.Temperature = dir, "clerk", new(float64) }))
	}
	writeText(t, `{"type":"object"}`, dir+"/finding.json")
	file("fallback: [ollama/n]\noutput_schema: finding.json\nrequire: {evidence: [delegate=x]}\ncontinue: 500\ncontext: {model: ollama/s}\nwatch: off")
	o, _, err := ask()
	if err != nil {
		t.Fatal(err)
	}
	m := findDefinition(t, o, "clerk").LoopOptions
	if len(m.Fallbacks) != 1 || m.Fallbacks[0].Name != "ollama/n" || m.Fallbacks[0].Temperature == nil || m.Context.Model == nil || !m.Context.Model.Price.Known {
		t.Errorf("models of %+v", m)
	}
	if m.Require.Schema != `{"type":"object"}` || len(m.Require.Evidence) != 1 || m.Continue.Tokens != 500 || m.Watch.Of != spec.Off {
		t.Errorf("%+v", m)
	}
	for own, want := range map[string]string{
		"fallback: [nobody/x]":              "agent clerk: fallback \"nobody/x\": model: not a model name",
		"require: {evidence: [fetch]}":      "agent clerk: a result of fetch is required, and there is no such tool",
		"output_schema: none.json":          "clerk.md:6: output_schema",
		"continue: {tokns: 3}":              "did you mean tokens?",
		"output_schema: ../../finding.json": "output_schema",
	} {
		file(own)
		_, _, err := ask()
		var refused *client.Error
		if !errors.As(err, &refused) || refused.Code != client.CodeBad || !strings.Contains(refused.Text, want) {
			t.Errorf("%s: %v", own, err)
		}
	}
}

// The operator's word on a tool goes over what the tool says itself; the file of
// the directory can only take trust away (C2).
//
//behaviour:shows C2
func TestOperatorSetsTheClassOfATool(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeText(t, "tools:\n  grep: {class: effect}\n  write_file: {class: read}\n  list_dir: {class: read, poll: true}\n  delegate: {class: effect}\n  fly: {class: read}\n", dir+"/"+config.FileName)
	own := []agentfile.ToolRule{{Name: "write_file", Class: model.Irreversible}, {Name: "git_log", Class: model.Idempotent}, {Name: "list_dir", Class: model.Idempotent}}
	h := newBuildOnlyNode(dir, func(c *Config) { c.Tools = own })
	o, a, err := h.buildRun(newRequest(func(r *client.RunRequest) { r.Dir = dir }))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]model.ToolSpec{}
	for _, s := range o.Tools {
		got[s.Name] = s
	}
	for name, want := range map[string]model.Class{"grep": model.Effect, "write_file": model.Irreversible, "git_log": model.Idempotent,
		"list_dir": model.Idempotent, "delegate": model.Read, "read_file": model.Read} {
		if got[name].Class != want {
			t.Errorf("%s is %s, want %s", name, got[name].Class, want)
		}
	}
	if !got["list_dir"].Poll || got["grep"].Poll {
		t.Error("poll")
	}
	notes := strings.Join(a.Notes, "\n")
	for _, want := range []string{"write_file stays irreversible; only the user's own troupe.yaml can trust it more", "list_dir stays idempotent",
		"the class of delegate is the loop's own", "this run has no tool fly"} {
		if !strings.Contains(notes, want) {
			t.Errorf("no note %q in\n%s", want, notes)
		}
	}
	writeText(t, "tools: {grep: {clas: effect}}\n", dir+"/"+config.FileName)
	var refused *client.Error
	if _, _, err := h.buildRun(newRequest(func(r *client.RunRequest) { r.Dir = dir })); !errors.As(err, &refused) || !strings.Contains(refused.Text, "did you mean class?") {
		t.Errorf("%v", err)
	}
}

// Every key that agentfile reads from settings is a key of settings.
func TestSettingsKnowTheKeysOfAgentfile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, key := range agentfile.SharedKeys() {
		writeText(t, key+": {}\n", dir+"/"+config.FileName)
		if _, err := config.Load(config.SettingSources{Dir: dir, User: dir + "/none", Getenv: func(string) string { return "" }}); err != nil {
			t.Error(err)
		}
	}
}

// A whole run: the first model's key is refused and the next takes over, a
// command that fails in passing runs again under the same key, a claimed
// completion without evidence is sent back, and the answer is the JSON that was
// asked for (A15, C5, A27).
//
//behaviour:shows A15
func TestRunFallsBackAndRetriesItsTool(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	dir := t.TempDir()
	writeText(t, `---
name: clerk
description: Probes.
x-troupe:
  tools: [{name: probe, description: Probes., command: 'echo "$TROUPE_KEY" >> keys; [ "$TROUPE_ATTEMPT" -gt 1 ] || exit 75; echo the sky is blue', effect: idempotent}]
---
Probe.
`, dir+"/agents/clerk.md")
	first := writeScript(t, "agents:\n  clerk:\n    - text: I think\n      cut: true\n      error: {class: authentication}\n")
	second := writeScript(t, `agents:
  clerk:
    - text: '{"colour":"blue"}'
    - calls: [{name: probe}]
    - text: "It is:\n`+"```json"+`\n{\"colour\":\"blue\"}\n`+"```"+`"
`)
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{dir} })
	c := connectClient(t, h)
	id := beginRun(t, c, client.RunRequest{Agent: "clerk", Agents: dir + "/agents", Dir: dir, Model: first, Fallback: []string{second},
		RequireTool: []string{"probe=blue"}, JSONSchema: json.RawMessage(`{"type":"object","required":["colour"]}`)})
	info := waitFinished(t, c, id, spec.Completed)
	if info.Result.Text != `{"colour":"blue"}` {
		t.Errorf("the answer is %q", info.Result.Text)
	}
	keys, err := os.ReadFile(dir + "/keys")
	if lines := strings.Fields(string(keys)); err != nil || len(lines) != 2 || lines[0] != lines[1] {
		t.Errorf("keys of attempts: %q %v", keys, err)
	}
	var told []string
	err = c.Events(testContext(t), id, nil, false, func(e client.Event, _ []byte) error {
		var d struct{ From, To, Transition, Tool string }
		if err := json.Unmarshal(e.Data, &d); err != nil {
			return err
		}
		switch e.Kind {
		case event.KindModelFallback:
			told = append(told, e.Kind+" "+d.From+" "+d.To)
		case event.KindTurnStarted:
			told = append(told, e.Kind+" "+d.Transition)
		case event.KindToolStarted, event.KindToolRetry, event.KindToolFinished, event.KindMessageTombstoned:
			told = append(told, strings.TrimSpace(e.Kind+" "+d.Tool))
		}
		return nil
	})
	want := []string{"turn.started ", event.KindMessageTombstoned, "model.fallback " + first + " " + second, "turn.started model_fallback",
		"turn.started criteria_unmet", "tool.started probe", "tool.retry probe", "tool.started probe", "tool.finished probe", "turn.started next_turn"}
	if err != nil || !slices.Equal(told, want) {
		t.Errorf("%v\ntold %q\nwant %q", err, told, want)
	}
}
