// Package main is a bounded refund investigation: the agent may gather evidence
// and draft a recommendation. It has no right to issue the refund, and
// no output of a model changes that.
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"slices"
	"strings"

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

func main() {
	for _, s := range scenarios {
		if err := s.runScenario(memory.New(memory.Config{})); err != nil {
			log.Fatal(err)
		}
	}
}

// runScenario runs one scenario and reports how it ended and which tools ran.
func (s scenario) runScenario(logs mailbox.Post) error {
	scripted, err := script.Parse([]byte(s.replies))
	if err != nil {
		return err
	}
	shop := &refundShop{broken: s.broken}
	ended := make(chan string, 8)
	node, err := actors.Start(context.Background(), actors.Config{
		Post:  logs,
		Lease: 1, // the first owner of these logs
		Model: func(string) (model.Client, string, error) { return scripted.Client(""), "script", nil },
		Tools: func(spec.Task) (*tool.Set, error) { return shop.toolSet() },
		Hooks: map[string]actors.HookFunc{"compliance": checkCompliance},
		OnEvent: func(e event.Published) {
			if asked, ok := e.Data.(event.AgentParked); ok && e.Kind == event.KindAgentParked {
				ended <- fmt.Sprintf("%s (it waits): %s", asked.Reason, asked.Question)
			}
		},
		OnResult: func(_ string, r event.Result) {
			ended <- fmt.Sprintf("%s: %s", r.Reason, cmp.Or(r.Detail, r.Text))
		},
	})
	if err != nil {
		return err
	}
	defer node.Stop()
	if err := node.Open(context.Background(), openInvestigation(s.name)); err != nil {
		return err
	}
	how, _, _ := strings.Cut(<-ended, "\n")
	fmt.Printf("%s\n  %s\n  ran: %s; refunds issued: %d\n", s.name, how, strings.Join(shop.ran, ", "), shop.refunds)
	return nil
}

// openInvestigation defines what the agent may do, what it must have, and what it may cost.
func openInvestigation(run string) supervisor.Opened {
	options := spec.DefaultLoopOptions()
	options.ToolRetries = 0
	options.Hooks = []spec.Hook{{Name: "compliance", Point: spec.HookPreTool, Tools: "draft_.*"}}
	options.Require.Evidence = []spec.Evidence{{Tool: "read_order"}, {Tool: "search_refund_policy"}}
	return supervisor.Opened{
		Run: strings.ReplaceAll(run, " ", "-"), Goal: "Decide whether refund evidence is sufficient for order O-104.",
		Root: "investigator", Tools: toolSpecs(), LoopOptions: options, RootTurns: 4,
		Definitions: []supervisor.Definition{{Name: "investigator", System: "You are the investigator.", Tools: allowed, Deny: forbidden}},
		Model:       spec.Model{Name: "script/refund"},
		Limits:      spec.RunLimits{Tokens: 50_000, Calls: 12}, Agent: spec.Limits{Parallel: 1},
	}
}

var (
	allowed = []string{"read_order", "read_delivery_status", "search_refund_policy", "ask_customer_clarifying_question",
		"draft_refund_recommendation"}
	forbidden = []string{"issue_refund", "change_payment_method", "update_policy"}
)

// toolSpecs lists all tools of the run, including the forbidden ones: the run knows
// them, but the agent does not have them.
func toolSpecs() []model.ToolSpec {
	var list []model.ToolSpec
	for _, name := range slices.Concat(allowed, forbidden) {
		class := model.Read
		if slices.Contains(forbidden, name) {
			class = model.Irreversible
		}
		list = append(list, model.ToolSpec{Name: name, Description: toolDescriptions[name], Schema: `{"type":"object"}`, Class: class})
	}
	return list
}
