// Package main shows orchestration without a model: a chain in which each
// agent gets the answer of the previous one, and two parallel agents whose
// answers a third one combines. Each is one durable run with one pool.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/troupe-run/troupe"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/script"
)

const replies = `
agents:
  historian: [{text: "One person wrote it, in a week."}]
  critic: [{text: "It holds."}]
  editor: [{text: "I read: {{task}}"}]
`

func main() {
	if err := review(context.Background(), ""); err != nil {
		log.Fatal(err)
	}
}

// review keeps its logs in a directory; "": in one that it removes.
func review(ctx context.Context, stateDir string) (err error) {
	scripted, err := script.Parse([]byte(replies))
	if err != nil {
		return err
	}
	node, err := troupe.Start(ctx, troupe.Config{
		StateDir: stateDir,
		Agents: []troupe.Agent{
			{Name: "historian", Description: "Knows who wrote it."},
			{Name: "critic", Description: "Judges it."},
			{Name: "editor", Description: "Writes the review."},
		},
		Models: map[string]model.Client{"script/review": scripted.Client("")},
		Model:  "script/review",
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }()

	// The same from a command line: troupe run --agent chain "historian > critic > editor: Review this."
	for _, t := range []troupe.Task{
		{Agent: "chain", Prompt: "historian > critic > editor: Review this."},
		{Agent: "consolidate", Prompt: "Review this.\n- historian: who wrote it?\n- critic\n=> editor: one line"},
		{Agent: "chain", Prompt: "historian > nobody > editor: Review this."},
	} {
		r, err := node.Run(ctx, t)
		if err != nil { // of the last one: its plan names an agent that does not exist
			fmt.Println(err)
			continue
		}
		fmt.Printf("%s, %d agents, partial %t\n%s\n\n", r.Reason, len(r.Agents), r.Partial, r.Text)
	}
	return nil
}
