package agent_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent"
)

// TestMannersThatCannotBeKept: the doors refuse what a loop could not do (A15, A22, A27).
//
//behaviour:shows A27
func TestMannersThatCannotBeKept(t *testing.T) {
	for want, m := range map[string]agent.Manners{
		"4 fallbacks, at most 3":               {Fallbacks: make([]agent.Model, 4)},
		"17 results are required, at most 16":  {Require: agent.Require{Evidence: make([]agent.Evidence, 17)}},
		"require.evidence has no tool":         {Require: agent.Require{Evidence: []agent.Evidence{{Contains: "x"}}}},
		"of search must contain has 1025":      {Require: agent.Require{Evidence: []agent.Evidence{{Tool: "search", Contains: strings.Repeat("x", 1025)}}}},
		"it is no JSON object":                 {Require: agent.Require{Schema: `{"type":`}},
		"leads back to itself":                 {Require: agent.Require{Schema: `{"$ref":"#"}`}},
		`"#/$defs/x" at # leads to no schema`:  {Require: agent.Require{Schema: `{"$ref":"#/$defs/x","$defs":{}}`}},
		"cannot validate version":              {Require: agent.Require{Schema: `{"$schema":"http://json-schema.org/draft-04/schema#"}`}},
		"require.tries is 9, it may be 0 to 8": {Require: agent.Require{Tries: 9}},
		"continue.percent is 101":              {Continue: agent.Continue{Tokens: 1, Percent: 101}},
		"continue.tokens is -2":                {Continue: agent.Continue{Tokens: -2}},
		"watch.of is 101":                      {Watch: agent.Watch{Of: 101}},
		"65 polling tools":                     {Watch: agent.Watch{Polling: make([]string, 65)}},
		"breaker.failures is -2":               {Breaker: agent.Breaker{Failures: -2}},
		"context.percent is 96":                {Context: agent.Context{Percent: 96}},
		"tool_retries is 4, it may be -1 to 3": {ToolRetries: 4},
		"a hook has no name":                   {Hooks: make([]agent.Hook, 1)},
	} {
		if err := m.Validate(); !errors.Is(err, agent.ErrManners) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if err := agent.DefaultManners().Validate(); err != nil {
		t.Error(err)
	}
	off := agent.Manners{Watch: agent.Watch{Of: agent.Off}, Breaker: agent.Breaker{Failures: agent.Off, Forbidden: agent.Off},
		ToolRetries: agent.Off, Continue: agent.Continue{Tokens: agent.Off}}
	if err := off.Validate(); err != nil {
		t.Error(err)
	}
	got := off.Over(agent.DefaultManners())
	if got.Watch.Of > 0 || got.Breaker.Failures > 0 || got.Breaker.Forbidden > 0 || got.ToolRetries > 0 || got.Continue.Tokens > 0 {
		t.Errorf("what is off is on: %+v", got)
	}
}
