// Package main shows orchestration without a model: a chain in which each
// agent gets the answer of the previous one, and two parallel agents whose
// answers a third one combines. Each is one durable run with one pool.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/orchestrator"
	"github.com/troupe-run/troupe/mailbox/memory"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/script"
	"github.com/troupe-run/troupe/supervisor"
)

const replies = `
agents:
  historian: [{text: "One person wrote it, in a week."}]
  critic: [{text: "It holds."}]
  editor: [{text: "I read: {{task}}"}]
`

func main() {
	// The same from a command line: troupe run --agent chain "historian > critic > editor: Review this."
	for _, p := range []struct{ route, prompt string }{
		{orchestrator.Chain, "historian > critic > editor: Review this."},
		{orchestrator.Consolidate, "Review this.\n- historian: who wrote it?\n- critic\n=> editor: one line"},
		{orchestrator.Chain, "historian > nobody > editor: Review this."},
	} {
		if err := follow(p.route, p.prompt); err != nil {
			log.Fatal(err)
		}
	}
}

func follow(route, prompt string) error {
	scripted, err := script.Parse([]byte(replies))
	if err != nil {
		return err
	}
	over := make(chan event.Result, 1)
	node, err := actors.Start(context.Background(), actors.Config{
		Post:  memory.New(memory.Config{}),
		Lease: 1, // the first owner of these logs
		Model: func(name string) (model.Client, string, error) {
			if name == "builtin/"+route {
				return orchestrator.New(route), route, nil
			}
			return scripted.Client(""), "script", nil
		},
		Over: func(_ string, r event.Result) { over <- r },
	})
	if err != nil {
		return err
	}
	defer node.Stop()
	err = node.Open(context.Background(), supervisor.Opened{
		Run: "review", Goal: prompt, Root: route,
		Definitions: []supervisor.Definition{
			{Name: route, System: "Follow the plan of the task.", Model: &spec.Model{Name: "builtin/" + route}},
			{Name: "historian", System: "You are the historian."},
			{Name: "critic", System: "You are the critic."},
			{Name: "editor", System: "You are the editor."},
		},
		Tools:  []model.ToolSpec{delegate},
		Model:  spec.Model{Name: "script/review"},
		Limits: spec.RunLimits{Tokens: 50_000},
	})
	if err != nil {
		return err
	}
	r := <-over
	fmt.Printf("%s, %d agents, partial %t\n%s\n\n", r.Reason, len(r.Agents), r.Partial, r.Text)
	return nil
}

var delegate = agent.DelegateSpec("", false)
