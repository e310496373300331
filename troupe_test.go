package troupe_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/troupe-run/troupe"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/script"
	"github.com/troupe-run/troupe/tool"
)

// patience is how long a test waits for what must happen.
const patience = 120 * time.Second

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// startScripted starts a node whose model is played by a script.
func startScripted(t *testing.T, replies string, cfg troupe.Config) *troupe.Node {
	t.Helper()
	return startModel(t, parsedScript(t, replies), cfg)
}

func parsedScript(t *testing.T, replies string) model.Client {
	t.Helper()
	s, err := script.Parse([]byte(replies))
	if err != nil {
		t.Fatal(err)
	}
	return s.Client("")
}

// startModel starts a node with one model.
func startModel(t *testing.T, c model.Client, cfg troupe.Config) *troupe.Node {
	t.Helper()
	cfg.Models, cfg.Model = map[string]model.Client{"script/test": c}, "script/test"
	cfg.Env = func(string) string { return "" }
	n, err := troupe.Start(testContext(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

type greetArgs struct {
	Name string `json:"name"`
}

func greetTool() tool.Tool {
	return tool.Func("greet", "Greets somebody.", model.Read, func(_ context.Context, a greetArgs) (string, error) { return "Salve, " + a.Name, nil })
}

func namedAgents(names ...string) []troupe.Agent {
	var list []troupe.Agent
	for _, n := range names {
		list = append(list, troupe.Agent{Name: n, Description: "Is " + n + ".", Prompt: "Do as you are told."})
	}
	return list
}

// The agents of a program and their children have its tools, and an agent has
// the part of them that its definition names.
//
//behaviour:shows E6
func TestAgentsOfAProgramCallItsFunctions(t *testing.T) {
	agents := namedAgents("host", "guest", "mute")
	agents[2].Tools = []troupe.ToolRef{}
	n := startScripted(t, `
agents:
  host:
    - calls: [{name: delegate, args: {agent: guest, task: go}}, {name: delegate, args: {agent: mute, task: go}}]
    - text: "{{result.0}} / {{result.1}}"
  guest: [{calls: [{name: greet, args: {name: Ann}}]}, {text: "{{last}}"}]
  mute: [{calls: [{name: greet, args: {name: Bob}}, {name: delegate, args: {agent: guest, task: go}}]}, {text: "[done] {{result.0}}"}]
`, troupe.Config{Tools: []tool.Tool{greetTool()}, Agents: agents})
	r, err := n.Run(testContext(t), troupe.Task{Prompt: "greet"})
	if err != nil || !strings.Contains(r.Text, "Salve, Ann") || strings.Contains(r.Text, "Bob") {
		t.Errorf("%q %v", r.Text, err)
	}
}

// promptClient keeps the newest system prompt and the tools that it is sent.
type promptClient struct {
	model.Client
	system string
	tools  []model.ToolSpec
}

func (c *promptClient) Complete(ctx context.Context, req model.Request, emit func(model.Delta)) (model.Reply, error) {
	c.system, c.tools = req.System, req.Tools
	return c.Client.Complete(ctx, req, emit)
}

// An agent of a program keeps notes from one node to the next on the same state directory: the prompt of the later run
// lists them, and only if the agent asks is their text sent.
//
//behaviour:shows K8
func TestAgentOfAProgramKeepsNotes(t *testing.T) {
	agents := namedAgents("clerk")
	agents[0].Memory = "user"
	state := t.TempDir()
	for _, c := range []struct{ call, says, prompt string }{
		{`{name: memory_write, args: {name: hours, description: Opening hours, content: Closed on Monday.}}`, "saved hours", "There are no notes yet."},
		{`{name: memory_read, args: {name: hours}}`, "Closed on Monday.", "- hours: Opening hours"},
	} {
		s, err := script.Parse([]byte(`agents: {clerk: [{calls: [` + c.call + `]}, {text: "{{last}}"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		seen := &promptClient{Client: s.Client("")}
		n, err := troupe.Start(testContext(t), troupe.Config{Agents: agents, StateDir: state, Models: map[string]model.Client{"script/test": seen}, Model: "script/test",
			Env: func(string) string { return "" }})
		if err != nil {
			t.Fatal(err)
		}
		r, err := n.Run(testContext(t), troupe.Task{Prompt: "go"})
		if err := errors.Join(err, n.Close()); err != nil || !strings.Contains(r.Text, c.says) {
			t.Errorf("%s: %q %v", c.call, r.Text, err)
		}
		if !strings.Contains(seen.system, c.prompt) || strings.Contains(seen.system, "Monday") {
			t.Errorf("%s: the prompt is %q", c.call, seen.system)
		}
	}
}

type testVerdict struct {
	Good  bool     `json:"good"`
	Lines []string `json:"lines"`
}

// An answer that does not fit the type goes back to the model, and so does a
// child's to a parent that asked for one.
//
//behaviour:shows H4
func TestAnswersAreGoValues(t *testing.T) {
	judge, err := troupe.Answers[testVerdict](namedAgents("judge")[0])
	if err != nil {
		t.Fatal(err)
	}
	n := startScripted(t, `
agents:
  chief:
    - calls: [{name: delegate, args: {agent: judge, task: judge}}]
    - text: "{{last}}"
  judge: [{text: "It is good."}, {text: '{"good": true, "lines": ["a"]}'}]
`, troupe.Config{Agents: append(namedAgents("chief"), judge)})
	v, r, err := troupe.Answer[testVerdict](testContext(t), n, troupe.Task{Prompt: "judge"})
	if err != nil || !v.Good || len(v.Lines) != 1 {
		t.Errorf("%+v %v: %s", v, err, r.Text)
	}
	if _, _, err := troupe.Answer[chan int](testContext(t), n, troupe.Task{Prompt: "judge"}); !errors.Is(err, tool.ErrType) {
		t.Error(err)
	}
}

func TestARunThatDoesNotCompleteIsAnErrorWithAResult(t *testing.T) {
	n := startScripted(t, "agents: {a: [{calls: [{name: greet, args: {name: A}}]}, {calls: [{name: greet, args: {name: B}}]}]}",
		troupe.Config{Tools: []tool.Tool{greetTool()}, Agents: namedAgents("a")})
	r, err := n.Run(testContext(t), troupe.Task{Prompt: "go on", MaxTurns: 1})
	if !errors.Is(err, troupe.ErrIncomplete) || r.Reason != "max_turns" || !r.Partial {
		t.Errorf("%+v %v", r, err)
	}
	if _, err := n.Run(testContext(t), troupe.Task{Prompt: "go", Agent: "nobody"}); err == nil || !strings.Contains(err.Error(), "nobody") {
		t.Error(err)
	}
}

// Guardrails of a node and of a task add up, and apply to children, too.
//
//behaviour:shows K6
func TestGuardrailsOfAProgram(t *testing.T) {
	ticket := spec.ReadyGuardrail{Name: "patterns", Label: "ticket", Pattern: `SEC-\d+`, At: []spec.HookPoint{spec.HookToolResult}}
	n := startScripted(t, `
agents:
  host:
    - calls: [{name: delegate, args: {agent: guest, task: go}}]
    - text: "{{last}}"
  guest: [{calls: [{name: greet, args: {name: SEC-12}}]}, {text: "{{last}}"}]
`, troupe.Config{Tools: []tool.Tool{greetTool()}, Agents: namedAgents("host", "guest"), Guardrails: []spec.ReadyGuardrail{ticket}})
	r, err := n.Run(testContext(t), troupe.Task{Prompt: "greet"})
	if err != nil || !strings.Contains(r.Text, `the result has the pattern "ticket"`) || strings.Contains(r.Text, "SEC-12") {
		t.Errorf("%q %v", r.Text, err)
	}
	ends := spec.ReadyGuardrail{Name: "patterns", Pattern: "withheld", Action: "end"}
	r, err = n.Run(testContext(t), troupe.Task{Prompt: "greet", Guardrails: []spec.ReadyGuardrail{ends}})
	if !errors.Is(err, troupe.ErrIncomplete) || r.Reason != spec.Guardrail || !strings.Contains(r.Text, "stopped by a guardrail") {
		t.Errorf("%+v %v", r, err)
	}
	if _, err := n.Run(testContext(t), troupe.Task{Prompt: "greet", Guardrails: []spec.ReadyGuardrail{{Name: "injektion"}}}); err == nil || !strings.Contains(err.Error(), "did you mean injection?") {
		t.Error(err)
	}
}

// A run that asks a person is left waiting; the same RunID waits on for it.
func TestParkedRunContinuesAfterItsAnswer(t *testing.T) {
	n := startScripted(t, `agents: {a: [{calls: [{name: ask_human, args: {question: "Red?"}}]}, {text: "{{last}}"}]}`, troupe.Config{Agents: namedAgents("a")})
	ctx, id := testContext(t), client.NewID()
	if _, err := n.Run(ctx, troupe.Task{Prompt: "ask", RunID: id}); !errors.Is(err, troupe.ErrParked) {
		t.Fatal(err)
	}
	asked, err := n.Client().Questions(ctx)
	if err != nil || len(asked) != 1 {
		t.Fatalf("%+v %v", asked, err)
	}
	if err := n.Client().Answer(ctx, client.AnswerRequest{RunID: id, Query: asked[0].Query, Decision: "text", Text: "blue"}); err != nil {
		t.Fatal(err)
	}
	if r, err := n.Run(ctx, troupe.Task{Prompt: "ask", RunID: id}); err != nil || !strings.Contains(r.Text, "blue") {
		t.Errorf("%q %v", r.Text, err)
	}
}

// A caller that goes away cancels its run, and gets what is known of it.
func TestTheEndOfTheContextCancelsTheRun(t *testing.T) {
	begun := make(chan struct{})
	wait := tool.Func("wait", "Waits.", model.Read, func(ctx context.Context, _ struct{}) (string, error) {
		close(begun)
		<-ctx.Done()
		return "", ctx.Err()
	})
	n := startScripted(t, "agents: {a: [{calls: [{name: wait}]}, {text: done}]}", troupe.Config{Tools: []tool.Tool{wait}, Agents: namedAgents("a")})
	ctx, cancel := context.WithCancel(testContext(t))
	go func() { <-begun; cancel() }()
	id := client.NewID()
	stopped, err := n.Run(ctx, troupe.Task{Prompt: "wait", RunID: id})
	if !errors.Is(err, context.Canceled) || stopped.Subtype != "error_cancelled" || stopped.Turns != 1 {
		t.Errorf("%+v %v", stopped, err)
	}
	if r, err := n.Run(testContext(t), troupe.Task{Prompt: "wait", RunID: id}); !errors.Is(err, troupe.ErrIncomplete) || !strings.Contains(string(r.Reason), "abort") && r.Reason != "canceled" {
		t.Errorf("%+v %v", r, err)
	}
}

// Whenever the caller goes away, it leaves no run behind: also during the request for it.
func TestCanceledCallerLeavesNoRun(t *testing.T) {
	wait := tool.Func("wait", "Waits.", model.Read, func(ctx context.Context, _ struct{}) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	})
	n := startScripted(t, "agents: {a: [{calls: [{name: wait}]}, {text: done}]}", troupe.Config{Tools: []tool.Tool{wait}, Agents: namedAgents("a")})
	for i := range 24 {
		ctx, cancel := context.WithTimeout(testContext(t), time.Duration(i)*time.Millisecond/4)
		id := client.NewID()
		if _, err := n.Run(ctx, troupe.Task{Prompt: "wait", RunID: id}); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		cancel()
		info, err := n.Client().Wait(testContext(t), id) // until its time is over, unless it is canceled
		if unknown := (*client.Error)(nil); errors.As(err, &unknown) && unknown.Code == client.CodeNotFound {
			continue
		}
		if err != nil || info.Result == nil || info.Result.Subtype != "error_cancelled" {
			t.Errorf("after %d: %+v %v", i, info.Result, err)
		}
	}
}

// With a StateDir, the next node of the program finishes the runs that were begun.
func TestNextNodeFinishesUnfinishedRuns(t *testing.T) {
	state, id := t.TempDir(), client.NewID()
	begun, stop := make(chan struct{}), make(chan struct{})
	first := true
	step := tool.Func("step", "Takes its time.", model.Read, func(ctx context.Context, _ struct{}) (string, error) {
		if !first {
			return "stepped", nil
		}
		first = false
		close(begun)
		<-ctx.Done()
		close(stop)
		return "", ctx.Err()
	})
	s, err := script.Parse([]byte("agents: {a: [{calls: [{name: step}]}, {text: '{{last}}'}]}"))
	if err != nil {
		t.Fatal(err)
	}
	cfg := troupe.Config{Tools: []tool.Tool{step}, Agents: namedAgents("a"), StateDir: state, Model: "script/test",
		Models: map[string]model.Client{"script/test": s.Client("")}}
	n, err := troupe.Start(testContext(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Client().Run(testContext(t), client.RunRequest{Prompt: "step", Agent: "a", RunID: id}); err != nil {
		t.Fatal(err)
	}
	<-begun
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	<-stop
	if n, err = troupe.Start(testContext(t), cfg); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = n.Close() }()
	if r, err := n.Run(testContext(t), troupe.Task{Prompt: "step", Agent: "a", RunID: id}); err != nil || r.Text != "stepped" {
		t.Errorf("%+v %v", r, err)
	}
}

func TestANodeWithoutAStateDirLeavesNothingBehind(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	n := startScripted(t, "default: [{text: hello}]", troupe.Config{Agents: namedAgents("a")})
	if r, err := n.Run(testContext(t), troupe.Task{Prompt: "greet"}); err != nil || r.Text != "hello" {
		t.Errorf("%+v %v", r, err)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(temp + "/*")
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}

// Agents of a node with a directory read it; a task may name a directory below it, and none
// outside it.
func TestATaskStaysBelowTheDirectoryOfItsNode(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(dir+"/in/deep", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/in/deep/f.txt", []byte("found"), 0o600); err != nil {
		t.Fatal(err)
	}
	n := startScripted(t, "agents: {a: [{calls: [{name: read_file, args: {path: f.txt}}]}, {text: '{{last}}'}]}", troupe.Config{Agents: namedAgents("a"), Dir: dir + "/in"})
	if r, err := n.Run(testContext(t), troupe.Task{Prompt: "read", Dir: dir + "/in/deep"}); err != nil || !strings.Contains(r.Text, "found") {
		t.Errorf("%+v %v", r, err)
	}
	if _, err := n.Run(testContext(t), troupe.Task{Prompt: "read", Dir: dir}); err == nil || !strings.Contains(err.Error(), "not under a root") {
		t.Error(err)
	}
}

func TestInvalidContributionsAreRefused(t *testing.T) {
	long := troupe.Agent{Name: "a b", Description: "d"}
	for name, cfg := range map[string]troupe.Config{
		"a tool twice":      {Tools: []tool.Tool{greetTool(), greetTool()}},
		"a built-in name":   {Tools: []tool.Tool{tool.Func("read_file", "", model.Read, func(context.Context, struct{}) (string, error) { return "", nil })}},
		"a name of no form": {Agents: []troupe.Agent{long}},
		"no description":    {Agents: []troupe.Agent{{Name: "a"}}},
		"no schema":         {Agents: []troupe.Agent{{Name: "a", Description: "d", OutputSchema: "x.json"}}},
		"an agent twice":    {Agents: namedAgents("a", "a")},
		"no route":          {Models: map[string]model.Client{"mine": nil}},
		"no such guardrail": {Guardrails: []spec.ReadyGuardrail{{Name: "injektion"}}},
	} {
		if n, err := troupe.Start(testContext(t), cfg); !errors.Is(err, troupe.ErrConfig) {
			t.Errorf("%s: %v", name, err)
			if n != nil {
				_ = n.Close()
			}
		}
	}
}
