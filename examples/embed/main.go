// Package main embeds troupe: a node in this process with an agent and a tool of
// its own. Without Models and Model, a model is picked by the keys in the environment.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/troupe-run/troupe"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
)

type article struct{ Name string }

func stock(_ context.Context, a article) (int, error) { return map[string]int{"bolt": 12}[a.Name], nil }

func main() {
	if err := order(context.Background(), ""); err != nil {
		log.Fatal(err)
	}
}

// order keeps the logs of its run in a directory; "": in one that it removes.
func order(ctx context.Context, stateDir string) error {
	node, err := troupe.Start(ctx, troupe.Config{
		StateDir: stateDir,
		Agents:   []troupe.Agent{{Name: "clerk", Description: "Decides what to order.", Prompt: "Keep 20 of each item in stock."}},
		Tools:    []tool.Tool{tool.Func("stock", "How many of an item are in stock.", model.Read, stock)},
		Models:   offline, Model: "script/clerk",
	})
	if err != nil {
		return err
	}
	defer func() { _ = node.Close() }()
	answer, _, err := troupe.Answer[struct{ Pieces int }](ctx, node, troupe.Task{Prompt: "Do we need bolts?"})
	if err != nil {
		return err
	}
	fmt.Println("pieces to order:", answer.Pieces)
	return nil
}
