// Package main is the smallest troupe: one agent with one tool, in memory,
// played by a script instead of a model.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/script"
	"github.com/troupe-run/troupe/supervisor"
	"github.com/troupe-run/troupe/tool"
)

const replies = `
agents:
  greeter:
    - text: I look up how to greet.
      calls: [{name: greeting, args: {language: la}}]
    - text: "{{last}}, world!"
`

type ask struct {
	Language string `json:"language" jsonschema:"two letters"`
}

func main() {
	if err := hello(memory.New(memory.Config{})); err != nil {
		log.Fatal(err)
	}
}

func hello(logs mailbox.Post) error {
	greeting, err := tool.New("greeting", "Say how a language greets.", model.Read,
		func(_ context.Context, in ask, _ tool.Call) (string, error) {
			return map[string]string{"en": "Hello", "la": "Salve"}[in.Language], nil
		})
	if err != nil {
		return err
	}
	tools, err := tool.NewSet(greeting)
	if err != nil {
		return err
	}
	scripted, err := script.Parse([]byte(replies))
	if err != nil {
		return err
	}

	over := make(chan event.Result, 1)
	node, err := actors.Start(context.Background(), actors.Config{
		Post:     logs,
		Lease:    1, // the first owner of these logs
		Model:    func(string) (model.Client, string, error) { return scripted.Client(""), "script", nil },
		Tools:    func(spec.Task) (*tool.Set, error) { return tools, nil },
		OnResult: func(_ string, r event.Result) { over <- r },
	})
	if err != nil {
		return err
	}
	defer node.Stop()

	err = node.Open(context.Background(), supervisor.Opened{
		Run: "hello", Goal: "Greet the world in Latin", Root: "greeter",
		Definitions: []supervisor.Definition{{Name: "greeter", System: "You are the greeter."}},
		Tools:       tools.Specs(),
		Model:       spec.Model{Name: "script/hello"},
		Limits:      spec.RunLimits{Tokens: 20_000},
	})
	if err != nil {
		return err
	}
	r := <-over
	fmt.Println(r.Text)
	fmt.Printf("%s after %d turns\n", r.Reason, r.Turns)
	return nil
}
