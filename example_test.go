package troupe_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"
	"sync/atomic"

	"github.com/troupe-run/troupe"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/script"
	"github.com/troupe-run/troupe/tool"
)

// scriptedModels is the model of the examples: it sends the replies of a script, in order. Without
// Config.Models and Config.Model, the keys in the environment choose a model.
func scriptedModels(replies string) map[string]model.Client {
	s, err := script.Parse([]byte(replies))
	if err != nil {
		log.Fatal(err)
	}
	return map[string]model.Client{"script/example": s.Client("")}
}

// One agent, one task, one answer.
func Example() {
	ctx := context.Background()
	node, err := troupe.Start(ctx, troupe.Config{
		Agents: []troupe.Agent{{Name: "greeter", Description: "Greets.", Prompt: "Greet whoever is named."}},
		Models: scriptedModels(`agents: {greeter: [{text: "Hello, Ada."}]}`),
		Model:  "script/example",
	})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = node.Close() }()

	result, err := node.Run(ctx, troupe.Task{Prompt: "Greet Ada"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Text)
	fmt.Println(result.Reason, "after", result.Turns, "turn")
	// Output:
	// Hello, Ada.
	// completed after 1 turn
}

// A Go function is a tool. The model receives the struct's JSON Schema, and arguments that do not
// satisfy it never reach the function.
func ExampleConfig_tools() {
	type article struct {
		Name string `json:"name" jsonschema:"as in the catalog"`
	}
	stock := tool.Func("stock", "How many pieces of an article are in stock.", model.Read,
		func(_ context.Context, a article) (int, error) {
			pieces, known := map[string]int{"bolt": 12}[a.Name]
			if !known {
				return 0, fmt.Errorf("no article %q", a.Name)
			}
			return pieces, nil
		})

	ctx := context.Background()
	node, err := troupe.Start(ctx, troupe.Config{
		Tools:  []tool.Tool{stock},
		Agents: []troupe.Agent{{Name: "clerk", Description: "Knows the stock.", Prompt: "Answer from the stock."}},
		Models: scriptedModels(`
agents:
  clerk:
    - calls: [{name: stock, args: {name: bolt}}, {name: stock, args: {name: nut}}]
    - text: "bolt: {{result.0}}, nut: {{result.1}}"
`),
		Model: "script/example",
	})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = node.Close() }()

	result, err := node.Run(ctx, troupe.Task{Prompt: "Do we have bolts and nuts?"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Text)
	// Output: bolt: 12, nut: no article "nut"
}

// shoutingModel is a model in Go: it answers the newest message in capitals.
type shoutingModel struct{}

func (shoutingModel) Complete(_ context.Context, r model.Request, _ func(model.Delta)) (model.Reply, error) {
	newest := r.Messages[len(r.Messages)-1]
	return model.Reply{
		Message: model.Message{Role: model.Assistant, Text: strings.ToUpper(newest.Text)},
		Stop:    model.StopEnd,
	}, nil
}

// Any model.Client can be a model, under a name PROVIDER/MODEL.
func ExampleConfig_models() {
	ctx := context.Background()
	node, err := troupe.Start(ctx, troupe.Config{
		Agents: []troupe.Agent{{Name: "crier", Description: "Repeats."}},
		Models: map[string]model.Client{"own/shouting": shoutingModel{}},
		Model:  "own/shouting",
	})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = node.Close() }()

	result, err := node.Run(ctx, troupe.Task{Prompt: "the show begins"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Text)
	// Output: THE SHOW BEGINS
}

// An agent delegates parts of its task to other agents. They work at the same time, and all of
// them spend from the budget of the run.
func ExampleNode_Run_delegation() {
	ctx := context.Background()
	node, err := troupe.Start(ctx, troupe.Config{
		Agents: []troupe.Agent{
			{Name: "editor", Description: "Reviews a book.", Prompt: "Ask the historian and the critic.", Delegates: []string{"historian", "critic"}},
			{Name: "historian", Description: "Knows the author.", Prompt: "Say who wrote it."},
			{Name: "critic", Description: "Judges a book.", Prompt: "Say whether it is good."},
		},
		Models: scriptedModels(`
agents:
  editor:
    - calls:
        - {name: delegate, args: {agent: historian, task: "Who wrote it?"}}
        - {name: delegate, args: {agent: critic, task: "Is it good?"}}
    - text: "{{result.0}} {{result.1}}"
  historian: [{text: "Mary Shelley."}]
  critic: [{text: "It is excellent."}]
`),
		Model: "script/example",
	})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = node.Close() }()

	result, err := node.Run(ctx, troupe.Task{Prompt: "Review Frankenstein"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Text)
	var tokens int64
	for _, a := range result.Agents {
		fmt.Println(a.Name, a.Reason)
		tokens += a.Tokens
	}
	fmt.Println("one budget:", tokens == result.Budget.Used && tokens < result.Budget.Limit)
	// Output:
	// Mary Shelley. It is excellent.
	// editor completed
	// historian completed
	// critic completed
	// one budget: true
}

// The answer is a Go value. An answer that does not fit the type is sent back to the model.
func ExampleAnswer() {
	type verdict struct {
		Good bool   `json:"good"`
		Why  string `json:"why"`
	}
	ctx := context.Background()
	node, err := troupe.Start(ctx, troupe.Config{
		Agents: []troupe.Agent{{Name: "critic", Description: "Judges a book."}},
		Models: scriptedModels(`agents: {critic: [{text: "It is good."}, {text: '{"good": true, "why": "It ages well."}'}]}`),
		Model:  "script/example",
	})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = node.Close() }()

	answer, result, err := troupe.Answer[verdict](ctx, node, troupe.Task{Prompt: "Is Frankenstein good?"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Good, answer.Why)
	fmt.Println(result.Turns, "turns")
	// Output:
	// true It ages well.
	// 2 turns
}

// A task has limits on tokens, money, turns, tool calls and time. A run that reaches one gets a
// last turn without tools, in which the model reports what it has found.
func ExampleTask_limits() {
	next := tool.Func("next_page", "Returns the next page.", model.Read,
		func(context.Context, struct{}) (string, error) { return "another page", nil })
	ctx := context.Background()
	node, err := troupe.Start(ctx, troupe.Config{
		Tools:  []tool.Tool{next},
		Agents: []troupe.Agent{{Name: "reader", Description: "Reads."}},
		Models: scriptedModels(`
agents:
  reader:
    - {calls: [{name: next_page}]}
    - {calls: [{name: next_page}]}
    - {calls: [{name: next_page}]}
closing: I have read two pages.
`),
		Model: "script/example",
	})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = node.Close() }()

	result, err := node.Run(ctx, troupe.Task{Prompt: "Read the book", MaxTurns: 2, MaxTokens: 50_000})
	fmt.Println(errors.Is(err, troupe.ErrIncomplete), result.Reason)
	fmt.Println("partial:", result.Partial, result.Text)
	fmt.Println("within the budget:", result.Budget.Used <= 50_000)
	// Output:
	// true max_turns
	// partial: true I have read two pages.
	// within the budget: true
}

// Events shows what a run does, in the order of each agent's log. With follow it delivers events
// until the run has ended.
func ExampleNode_Client_events() {
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

	run, err := node.Client().Run(ctx, client.RunRequest{RunID: client.NewID(), Agent: "butler", Prompt: "What time is it?"})
	if err != nil {
		log.Fatal(err)
	}
	const follow = true
	err = node.Client().Events(ctx, run.RunID, nil, follow, func(e client.Event, _ []byte) error {
		switch e.Kind {
		case event.KindModelStarted, event.KindToolFinished, event.KindAgentFinished:
			fmt.Println(e.Agent, e.Kind)
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// root model.started
	// root tool.finished
	// root model.started
	// root agent.finished
}

// A run that asks a person waits for the answer. Run then returns ErrParked, and Run with the same
// RunID waits again.
func ExampleNode_Client_questions() {
	ctx := context.Background()
	node, err := troupe.Start(ctx, troupe.Config{
		Agents: []troupe.Agent{{Name: "painter", Description: "Paints a door."}},
		Models: scriptedModels(`
agents:
  painter:
    - calls: [{name: ask_human, args: {question: "Which color?"}}]
    - text: "The door is painted. {{last}}"
`),
		Model: "script/example",
	})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = node.Close() }()

	task := troupe.Task{RunID: client.NewID(), Prompt: "Paint the door"}
	if _, err := node.Run(ctx, task); !errors.Is(err, troupe.ErrParked) {
		log.Fatal(err)
	}
	questions, err := node.Client().Questions(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, q := range questions {
		fmt.Println(q.Question)
		err := node.Client().Answer(ctx, client.AnswerRequest{RunID: q.RunID, Query: q.Query, Decision: "text", Text: "blue"})
		if err != nil {
			log.Fatal(err)
		}
	}
	result, err := node.Run(ctx, task)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(strings.Contains(result.Text, "blue"))
	// Output:
	// Which color?
	// true
}

// With a StateDir, the next node on the same directory continues the unfinished runs. The call
// that the first node was making has no result in the log; it only reads, so it is made again.
func ExampleNode_Close() {
	dir, err := os.MkdirTemp("", "troupe-example-")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()

	var closing atomic.Bool
	calling := make(chan struct{})
	measure := tool.Func("measure", "Takes a measurement.", model.Read, func(ctx context.Context, _ struct{}) (string, error) {
		if closing.Load() {
			return "42 degrees", nil
		}
		close(calling)
		<-ctx.Done() // the node closes during this call
		return "", ctx.Err()
	})
	config := troupe.Config{
		StateDir: dir,
		Tools:    []tool.Tool{measure},
		Agents:   []troupe.Agent{{Name: "engineer", Description: "Measures."}},
		Models:   scriptedModels(`agents: {engineer: [{calls: [{name: measure}]}, {text: "It has {{last}}."}]}`),
		Model:    "script/example",
	}
	task := troupe.Task{RunID: client.NewID(), Agent: "engineer", Prompt: "How hot is it?"}

	ctx := context.Background()
	first, err := troupe.Start(ctx, config)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := first.Client().Run(ctx, client.RunRequest{RunID: task.RunID, Agent: task.Agent, Prompt: task.Prompt}); err != nil {
		log.Fatal(err)
	}
	<-calling
	closing.Store(true)
	if err := first.Close(); err != nil {
		log.Fatal(err)
	}

	second, err := troupe.Start(ctx, config)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = second.Close() }()
	result, err := second.Run(ctx, task) // waits for the run that the first node started
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Text)
	// Output: It has 42 degrees.
}
