// Package main shows delegation: an agent gives two tasks to two children at
// once, and all three spend from one pool of tokens.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/script"
	"github.com/troupe-run/troupe/supervisor"
)

const replies = `
agents:
  editor:
    - text: Two of you look at it side by side.
      calls:
        - {name: delegate, args: {agent: historian, task: "Who wrote it?"}}
        - {name: delegate, args: {agent: critic, task: "Is it any good?"}}
    - text: "History: {{result.0}} Verdict: {{result.1}}"
  historian:
    - text: Mostly one person.
  critic:
    - text: It holds.
`

// delegate needs no code: to the runtime a child is a tool that takes its time.
var delegate = agent.DelegateSpec("", false)

func main() {
	if err := edit(memory.New(memory.Config{})); err != nil {
		log.Fatal(err)
	}
}

func edit(logs mailbox.Post) error {
	scripted, err := script.Parse([]byte(replies))
	if err != nil {
		return err
	}
	over := make(chan event.Result, 1)
	node, err := actors.Start(context.Background(), actors.Config{
		Post:     logs,
		Lease:    1, // the first owner of these logs
		Model:    func(string) (model.Client, string, error) { return scripted.Client(""), "script", nil },
		OnResult: func(_ string, r event.Result) { over <- r },
	})
	if err != nil {
		return err
	}
	defer node.Stop()

	err = node.Open(context.Background(), supervisor.Opened{
		Run: "review", Goal: "Review this", Root: "editor",
		Definitions: []supervisor.Definition{
			{Name: "editor", System: "You are the editor."},
			{Name: "historian", System: "You are the historian."},
			{Name: "critic", System: "You are the critic."},
		},
		Tools:  []model.ToolSpec{delegate},
		Model:  spec.Model{Name: "script/review"},
		Limits: spec.RunLimits{Tokens: 50_000},
	})
	if err != nil {
		return err
	}
	r := <-over
	fmt.Println(r.Text)
	spent := int64(0)
	for _, a := range r.Agents {
		fmt.Printf("%-8s %s\n", a.ID, a.Name)
		spent += a.Tokens
	}
	fmt.Println("the pool paid for all:", spent == r.Budget.Used && r.Budget.Used <= r.Budget.Limit)
	return nil
}
