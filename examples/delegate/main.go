// Package main shows delegation: an agent gives two tasks to two children at
// once, and all three spend from one pool of tokens.
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

func main() {
	if err := edit(context.Background(), ""); err != nil {
		log.Fatal(err)
	}
}

// edit keeps its logs in a directory; "": in one that it removes.
func edit(ctx context.Context, stateDir string) (err error) {
	scripted, err := script.Parse([]byte(replies))
	if err != nil {
		return err
	}
	node, err := troupe.Start(ctx, troupe.Config{
		StateDir: stateDir,
		Agents: []troupe.Agent{ // each may delegate to the others
			{Name: "editor", Description: "Writes the review."},
			{Name: "historian", Description: "Knows who wrote it."},
			{Name: "critic", Description: "Judges it."},
		},
		Models: map[string]model.Client{"script/review": scripted.Client("")},
		Model:  "script/review",
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }()

	result, err := node.Run(ctx, troupe.Task{Prompt: "Review this", MaxTokens: 50_000})
	if err != nil {
		return err
	}
	fmt.Println(result.Text)
	spent := int64(0)
	for _, a := range result.Agents {
		fmt.Printf("%-8s %s\n", a.ID, a.Name)
		spent += a.Tokens
	}
	budget := result.Budget
	fmt.Println("the pool paid for all:", spent == budget.Used && budget.Used <= budget.Limit)
	return nil
}
