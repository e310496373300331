package troupe_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"testing"

	"github.com/troupe-run/troupe"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/script"
	"github.com/troupe-run/troupe/tool"
	"github.com/troupe-run/troupe/troupetest"
)

// A stream yields what happens in a run as Go values.
func ExampleNode_Stream() {
	clock := tool.Func("clock", "Returns the time.", model.Read,
		func(context.Context, struct{}) (string, error) { return "noon", nil })
	ctx := context.Background()
	node, err := troupe.Start(ctx, troupe.Config{
		Tools:  []tool.Tool{clock},
		Agents: []troupe.Agent{{Name: "butler", Description: "Tells the time."}},
		Models: scriptedModels(`agents: {butler: [{calls: [{name: clock}]}, {text: "It is {{last}}."}]}`),
		Model:  "script/example",
	})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = node.Close() }()

	for e, err := range node.Stream(ctx, troupe.Task{Prompt: "What time is it?"}) {
		if err != nil {
			log.Fatal(err)
		}
		switch d := e.Data.(type) {
		case event.ToolCall:
			if e.Kind == event.KindToolFinished {
				fmt.Println(e.Agent, "has called", d.Tool)
			}
		case event.Result:
			fmt.Println(d.Text)
		}
	}
	// Output:
	// root has called clock
	// It is noon.
}

// The last pair of a stream has the error of Run; a task that is refused yields nothing else.
func TestStreamEndsWithTheErrorOfRun(t *testing.T) {
	n := startScripted(t, "agents: {a: [{calls: [{name: greet, args: {name: A}}]}, {calls: [{name: greet, args: {name: B}}]}]}",
		troupe.Config{Tools: []tool.Tool{greetTool()}, Agents: namedAgents("a")})
	var last error
	calls := 0
	for e, err := range n.Stream(testContext(t), troupe.Task{Prompt: "go on", MaxTurns: 1}) {
		if last != nil {
			t.Errorf("an event after the error: %+v", e)
		}
		if _, ok := e.Data.(event.ToolCall); ok && e.Kind == event.KindToolFinished {
			calls++
		}
		last = err
	}
	if !errors.Is(last, troupe.ErrIncomplete) || calls != 1 {
		t.Errorf("%v, %d calls", last, calls)
	}
	pairs := 0
	for _, err := range n.Stream(testContext(t), troupe.Task{Prompt: "go", Agent: "nobody"}) {
		pairs++
		if err == nil || !strings.Contains(err.Error(), "nobody") {
			t.Error(err)
		}
	}
	if pairs != 1 {
		t.Errorf("%d pairs of a refused task", pairs)
	}
}

// A loop that ends early cancels its run, and so does a loop that panics, and the end of the context.
func TestStreamThatIsLeftCancelsItsRun(t *testing.T) {
	wait := tool.Func("wait", "Waits.", model.Read, func(ctx context.Context, _ struct{}) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	})
	n := startScripted(t, "agents: {a: [{calls: [{name: wait}]}, {text: done}]}", troupe.Config{Tools: []tool.Tool{wait}, Agents: namedAgents("a")})
	left, ended, panicked := client.NewID(), client.NewID(), client.NewID()
	for e, err := range n.Stream(testContext(t), troupe.Task{Prompt: "wait", RunID: left}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == event.KindToolStarted {
			break
		}
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic of the loop is lost")
			}
		}()
		for range n.Stream(testContext(t), troupe.Task{Prompt: "wait", RunID: panicked}) {
			panic("the loop fails")
		}
	}()
	ctx, cancel := context.WithCancel(testContext(t))
	var last error
	for e, err := range n.Stream(ctx, troupe.Task{Prompt: "wait", RunID: ended}) {
		if e.Kind == event.KindToolStarted {
			cancel()
		}
		last = err
	}
	cancel()
	if !errors.Is(last, context.Canceled) {
		t.Error(last)
	}
	for id, why := range map[string]string{left: "loop", panicked: "loop", ended: "context"} {
		info, err := n.Client().Wait(testContext(t), id)
		if err != nil || info.Result == nil || info.Result.Subtype != "error_cancelled" || !strings.Contains(info.Result.Detail, why) {
			t.Errorf("%+v %v", info.Result, err)
		}
	}
}

// Questions reach the loop, which answers them; the stream goes on.
func TestStreamGoesOnAfterAQuestion(t *testing.T) {
	n := startScripted(t, `agents: {a: [{calls: [{name: ask_human, args: {question: "Red?"}}]}, {text: "{{last}}"}]}`, troupe.Config{Agents: namedAgents("a")})
	ctx := testContext(t)
	var text string
	for e, err := range n.Stream(ctx, troupe.Task{Prompt: "ask"}) {
		if err != nil {
			t.Fatal(err)
		}
		switch d := e.Data.(type) {
		case event.AgentParked:
			if e.Kind != event.KindQueryAsked {
				continue
			}
			if err := n.Client().Answer(ctx, client.AnswerRequest{RunID: e.Run, Query: d.Query, Decision: "text", Text: "blue"}); err != nil {
				t.Fatal(err)
			}
		case event.Result:
			text = d.Text
		}
	}
	if !strings.Contains(text, "blue") {
		t.Errorf("%q", text)
	}
}

// Start refuses agents that name what does not exist, with a suggestion.
func TestStartRefusesUnknownToolsAndDelegates(t *testing.T) {
	agents := func(change func(*troupe.Agent)) []troupe.Agent {
		list := namedAgents("chief", "guest")
		change(&list[0])
		return list
	}
	for words, cfg := range map[string]troupe.Config{
		`agent chief: there is no tool "gret"; did you mean "greet"?`:      {Agents: agents(func(a *troupe.Agent) { a.Tools = []troupe.ToolRef{{Name: "gret"}} })},
		`agent chief: there is no tool "raed_file"; did you mean read_fi`:  {Agents: agents(func(a *troupe.Agent) { a.DisallowedTools = []troupe.ToolRef{{Name: "raed_file"}} })},
		`agent chief: there is no tool "bash"; did you mean "shell"?`:      {Agents: agents(func(a *troupe.Agent) { a.Tools = []troupe.ToolRef{{Name: "bash"}} })},
		`agent chief: there is no agent "gest" to delegate to; did you me`: {Agents: agents(func(a *troupe.Agent) { a.Delegates = []string{"gest"} })},
	} {
		cfg.Tools = []tool.Tool{greetTool()}
		n, err := troupe.Start(testContext(t), cfg)
		if !errors.Is(err, troupe.ErrConfig) || !strings.Contains(err.Error(), words) {
			t.Errorf("%v, want %s", err, words)
		}
		if n != nil {
			_ = n.Close()
		}
	}
	n := startScripted(t, "default: [{text: hello}]", troupe.Config{Tools: []tool.Tool{greetTool()}, Agents: agents(func(a *troupe.Agent) {
		a.Tools, a.Delegates = []troupe.ToolRef{{Name: "greet"}, {Name: "read_file"}, {Name: "mcp__db"}}, []string{"guest", "explorer"}
	})})
	if err := n.Close(); err != nil {
		t.Error(err)
	}
}

// A program without a key gets an error, not the answer of a model that is none, unless it asks for that model.
func TestTaskWithoutAModelIsRefused(t *testing.T) {
	env := func(name string) string { return map[string]string{"OLLAMA_HOST": "127.0.0.1:1"}[name] }
	dir := t.TempDir()
	n, err := troupe.Start(testContext(t), troupe.Config{Env: env, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = n.Close() }()
	var refused *client.Error
	if _, err := n.Run(testContext(t), troupe.Task{Prompt: "go"}); !errors.As(err, &refused) || !strings.Contains(err.Error(), "ANTHROPIC_API_KEY") || !strings.Contains(err.Error(), "builtin/scout") {
		t.Error(err)
	}
	r, err := n.Run(testContext(t), troupe.Task{Prompt: "Investigate this repository and write report.md", Model: "builtin/scout", Yes: true})
	if err != nil || r.Text == "" {
		t.Errorf("%+v %v", r, err)
	}
}

// Without a key, the run has the model of the agent that gets the task; an agent that names none is refused.
func TestAgentsThatNameTheirModelsNeedNoKey(t *testing.T) {
	env := func(name string) string { return map[string]string{"OLLAMA_HOST": "127.0.0.1:1"}[name] }
	own := func(replies string) model.Client {
		s, err := script.Parse([]byte(replies))
		if err != nil {
			t.Fatal(err)
		}
		return s.Client("")
	}
	agents := namedAgents("boss", "helper", "guest")
	agents[0].Model, agents[1].Model = "own/large", "own/small"
	n := troupetest.Start(t, troupe.Config{Env: env, Agents: agents, Models: map[string]model.Client{
		"own/large": own("agents: {boss: [{calls: [{name: delegate, args: {agent: helper, task: go}}]}, {text: 'it says: {{last}}'}]}"),
		"own/small": own("agents: {helper: [{text: I am small}]}"),
	}}, "")
	tr := n.Run(troupe.Task{Prompt: "work"})
	tr.AssertCompleted("it says: I am small")
	if err := n.Run(troupe.Task{Prompt: "work", Agent: "guest"}).Err; err == nil || !strings.Contains(err.Error(), "ANTHROPIC_API_KEY") {
		t.Errorf("an agent without a model: %v", err)
	}
}
