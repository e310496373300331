// Package main is a bounded refund investigation: the agent may gather evidence
// and draft a recommendation. It has no right to issue the refund, and
// no output of a model changes that.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/troupe-run/troupe"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/script"
)

func main() {
	dir, err := os.MkdirTemp("", "refund")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for i, s := range scenarios {
		if err := s.investigate(context.Background(), filepath.Join(dir, fmt.Sprint(i))); err != nil {
			log.Fatal(err)
		}
	}
}

// investigate plays one scenario, with its logs in a directory, and prints how it ended and which tools ran.
func (s scenario) investigate(ctx context.Context, stateDir string) (err error) {
	scripted, err := script.Parse([]byte(s.replies))
	if err != nil {
		return err
	}
	shop := &refundShop{broken: s.broken}
	node, err := troupe.Start(ctx, troupe.Config{
		StateDir: stateDir,
		Agents: []troupe.Agent{{
			Name: "investigator", Description: "Investigates refunds.",
			Tools: toolRefs(allowed), DisallowedTools: toolRefs(forbidden),
		}},
		Tools:     shop.tools(),
		Hooks:     []spec.Hook{{Name: "compliance", Point: spec.HookPreTool, Tools: "draft_.*"}},
		HookFuncs: map[string]troupe.HookFunc{"compliance": checkCompliance},
		Models:    map[string]model.Client{"script/refund": scripted.Client("")},
		Model:     "script/refund",
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }()

	how, err := waitForOutcome(ctx, node)
	if err != nil {
		return err
	}
	line, _, _ := strings.Cut(how, "\n")
	fmt.Printf("%s\n  %s\n  ran: %s; refunds issued: %d\n", s.name, line, strings.Join(shop.ran, ", "), shop.refunds)
	return nil
}

// waitForOutcome runs the task until it ends, or until it waits for a person, whom this program does not ask.
func waitForOutcome(ctx context.Context, node *troupe.Node) (string, error) {
	for e, err := range node.Stream(ctx, task) {
		switch data := e.Data.(type) {
		case event.AgentParked:
			if e.Kind == event.KindAgentParked {
				return fmt.Sprintf("%s (it waits): %s", data.Reason, data.Question), nil
			}
		case event.Result:
			return fmt.Sprintf("%s: %s", data.Reason, cmp.Or(data.Detail, data.Text)), nil
		}
		if err != nil {
			return "", err
		}
	}
	return "", errors.New("the run has no result")
}

// task says what the agent must have read before it may answer, and what the run may cost.
var task = troupe.Task{
	Prompt:      "Decide whether refund evidence is sufficient for order O-104.",
	RequireTool: []string{"read_order", "search_refund_policy"},
	MaxTurns:    4, MaxTokens: 50_000, MaxToolCalls: 12, ToolRetries: -1,
	AgentLimits: client.AgentLimits{MaxParallelTools: 1},
}

var (
	allowed = []string{"read_order", "read_delivery_status", "search_refund_policy", "ask_customer_clarifying_question",
		"draft_refund_recommendation"}
	forbidden = []string{"issue_refund", "change_payment_method", "update_policy"}
)

func toolRefs(names []string) (refs []troupe.ToolRef) {
	for _, name := range names {
		refs = append(refs, troupe.ToolRef{Name: name})
	}
	return refs
}

// toolSpecs lists all tools of the shop, including the forbidden ones: the node has them, but the agent does not.
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
