package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/hook"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
)

// about is what a model is told of each tool.
var about = map[string]string{
	"read_order":                       "Read an order.",
	"read_delivery_status":             "Read where a parcel was and when.",
	"search_refund_policy":             "Search the rules for refunds.",
	"ask_customer_clarifying_question": "Send the customer one question and wait for the answer.",
	"draft_refund_recommendation":      "Draft a recommendation for a person who decides.",
	"issue_refund":                     "Pay the money back.",
	"change_payment_method":            "Change how the customer pays.",
	"update_policy":                    "Change the rules for refunds.",
}

var answers = map[string]string{
	"read_order":                       "O-104: 40 euros, promised for March 4",
	"read_delivery_status":             "delivered on March 9",
	"search_refund_policy":             "more than three days late: refund in full",
	"ask_customer_clarifying_question": "the customer says: the box was empty",
	"draft_refund_recommendation":      "draft 1 is filed",
}

// compliance is asked before a recommendation is drafted: to turn a customer
// down is for people.
func compliance(_ context.Context, c hook.Call) (agent.HookAnswer, error) {
	if strings.Contains(c.Data.Args, "turn down") {
		return agent.HookAnswer{Decision: agent.HookPrevent, Text: "A person turns customers down."}, nil
	}
	return agent.HookAnswer{}, nil
}

// shop is the world that the tools act on.
type shop struct {
	broken string // a tool that fails

	mu      sync.Mutex
	ran     []string
	refunds int
}

// tools are all of the shop's, the forbidden ones too: that they do not run is
// not for want of them.
func (s *shop) tools() (*tool.Set, error) {
	var all []tool.Tool
	for _, spec := range specs() {
		all = append(all, counter{s, spec})
	}
	return tool.NewSet(all...)
}

type counter struct {
	shop *shop
	spec model.ToolSpec
}

func (c counter) Spec() model.ToolSpec { return c.spec }

func (c counter) Call(context.Context, tool.Call) (tool.Result, error) {
	c.shop.mu.Lock()
	defer c.shop.mu.Unlock()
	if c.shop.ran = append(c.shop.ran, c.spec.Name); slices.Contains(forbidden, c.spec.Name) {
		c.shop.refunds++
	}
	if c.spec.Name == c.shop.broken {
		return tool.Result{}, errors.New("upstream timeout")
	}
	return tool.Result{Text: answers[c.spec.Name]}, nil
}
