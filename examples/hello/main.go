// Package main is the smallest troupe: one agent with one tool, played by a script
// instead of a model.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/troupe-run/troupe"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/script"
	"github.com/troupe-run/troupe/tool"
)

const replies = `
agents:
  greeter:
    - text: I look up how to greet.
      calls: [{name: greeting, args: {language: la}}]
    - text: "{{last}}, world!"
`

type request struct {
	Language string `json:"language" jsonschema:"two letters"`
}

func greeting(_ context.Context, in request) (string, error) {
	return map[string]string{"en": "Hello", "la": "Salve"}[in.Language], nil
}

func main() {
	if err := hello(context.Background(), ""); err != nil {
		log.Fatal(err)
	}
}

// hello keeps its logs in a directory; "": in one that it removes.
func hello(ctx context.Context, stateDir string) (err error) {
	scripted, err := script.Parse([]byte(replies))
	if err != nil {
		return err
	}
	node, err := troupe.Start(ctx, troupe.Config{
		StateDir: stateDir,
		Agents:   []troupe.Agent{{Name: "greeter", Description: "Greets in any language."}},
		Tools:    []tool.Tool{tool.Func("greeting", "Say how a language greets.", model.Read, greeting)},
		Models:   map[string]model.Client{"script/hello": scripted.Client("")},
		Model:    "script/hello",
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }()

	result, err := node.Run(ctx, troupe.Task{Prompt: "Greet the world in Latin"})
	if err != nil {
		return err
	}
	fmt.Println(result.Text)
	fmt.Printf("%s after %d turns\n", result.Reason, result.Turns)
	return nil
}
