// Package main shows hooks: a Go function stands before every call and takes
// money out of one, and a command line sends an answer back that lacks evidence.
package main

import (
	"context"
	"encoding/json"
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
  clerk:
    - calls: [{name: refund, args: {order: "77", sum: 500}}]
    - text: The order is refunded.
    - text: "The refund was refused. Evidence: {{result.0}}"
`

type Refund struct {
	Order string `json:"order"`
	Sum   int    `json:"sum"`
}

// hooks are data of the run: what they answer is in its log.
var hooks = []spec.Hook{
	{Name: "purse", Point: spec.HookPreTool, Tools: "refund", Failing: spec.HookDeny},
	{Name: "evidence", Point: spec.HookStop, Command: `grep -q Evidence: || { echo "Name the evidence." >&2; exit 2; }`},
}

// purse denies a payment of more than 100.
func purse(_ context.Context, c actors.HookCall) (spec.HookAnswer, error) {
	var in Refund
	if err := json.Unmarshal([]byte(c.Data.Args), &in); err != nil || in.Sum <= 100 {
		return spec.HookAnswer{}, err
	}
	return spec.HookAnswer{Decision: spec.HookDeny, Text: "nobody refunds more than 100"}, nil
}

func main() {
	if err := serve(memory.New(memory.Config{})); err != nil {
		log.Fatal(err)
	}
}

func serve(logs mailbox.Post) error {
	scripted, err := script.Parse([]byte(replies))
	if err != nil {
		return err
	}
	refund, err := tool.New("refund", "Pay money back.", model.Effect, func(context.Context, Refund, tool.Call) (string, error) {
		return "paid", nil
	})
	if err != nil {
		return err
	}
	set, err := tool.NewSet(refund)
	if err != nil {
		return err
	}
	over := make(chan event.Result, 1)
	node, err := actors.Start(context.Background(), actors.Config{
		Post:     logs,
		Lease:    1, // the first owner of these logs
		Hooks:    map[string]actors.HookFunc{"purse": purse},
		Model:    func(string) (model.Client, string, error) { return scripted.Client(""), "script", nil },
		Tools:    func(spec.Task) (*tool.Set, error) { return set, nil },
		OnResult: func(_ string, r event.Result) { over <- r },
		OnEvent: func(e event.Published) {
			if f, ok := e.Data.(event.HookFired); ok && f.Decision != "" {
				fmt.Println(f.Hook, f.Decision, f.Text)
			}
		},
	})
	if err != nil {
		return err
	}
	defer node.Stop()
	err = node.Open(context.Background(), supervisor.Opened{
		Run: "refund", Goal: "Refund order 77.", Root: "clerk", LoopOptions: spec.LoopOptions{Hooks: hooks},
		Definitions: []supervisor.Definition{{Name: "clerk", System: "You are the clerk."}},
		Model:       spec.Model{Name: "script/refund"}, Tools: set.Specs(), Limits: spec.RunLimits{Tokens: 20_000},
	})
	if err != nil {
		return err
	}
	fmt.Println((<-over).Text)
	return nil
}
