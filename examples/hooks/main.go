// Package main shows hooks: a Go function stands before every call and takes
// money out of one, and a command line sends an answer back that lacks evidence.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"

	"github.com/troupe-run/troupe"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/script"
	"github.com/troupe-run/troupe/tool"
)

const replies = `
agents:
  clerk:
    - calls: [{name: refund, args: {order: "77", sum: 500}}]
    - text: "[done] The order is refunded."
    - text: "[done] The refund was refused. Evidence: {{result.0}}"
`

type payment struct {
	Order string `json:"order"`
	Sum   int    `json:"sum"`
}

func refund(context.Context, payment) (string, error) { return "paid", nil }

// hooks are data of the run: what they answer is in its log.
var hooks = []spec.Hook{
	{Name: "purse", Point: spec.HookPreTool, Tools: "refund", Failing: spec.HookDeny},
	{Name: "evidence", Point: spec.HookStop, Command: `grep -q Evidence: || { echo "Name the evidence." >&2; exit 2; }`},
}

// purse denies a payment of more than 100.
func purse(_ context.Context, c troupe.HookCall) (spec.HookAnswer, error) {
	var in payment
	if err := json.Unmarshal([]byte(c.Data.Args), &in); err != nil || in.Sum <= 100 {
		return spec.HookAnswer{}, err
	}
	return spec.HookAnswer{Decision: spec.HookDeny, Text: "nobody refunds more than 100"}, nil
}

func main() {
	if err := serve(context.Background(), ""); err != nil {
		log.Fatal(err)
	}
}

// serve keeps its logs in a directory; "": in one that it removes.
func serve(ctx context.Context, stateDir string) (err error) {
	scripted, err := script.Parse([]byte(replies))
	if err != nil {
		return err
	}
	node, err := troupe.Start(ctx, troupe.Config{
		StateDir:  stateDir,
		Agents:    []troupe.Agent{{Name: "clerk", Description: "Answers customers."}},
		Tools:     []tool.Tool{tool.Func("refund", "Pay money back.", model.Effect, refund)},
		Hooks:     hooks,
		HookFuncs: map[string]troupe.HookFunc{"purse": purse},
		Models:    map[string]model.Client{"script/refund": scripted.Client("")},
		Model:     "script/refund",
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }()

	for e, err := range node.Stream(ctx, troupe.Task{Prompt: "Refund order 77."}) {
		if err != nil {
			return err
		}
		switch data := e.Data.(type) {
		case event.HookFired:
			if data.Decision != "" {
				fmt.Println(data.Hook, data.Decision, data.Text)
			}
		case event.Result:
			fmt.Println(data.Text)
		}
	}
	return nil
}
