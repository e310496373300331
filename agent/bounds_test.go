package agent_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/loopoptions"
)

// TestInvalidLoopOptions: requests for what a loop could not do are refused (A15, A22, A27).
//
//behaviour:shows A27
func TestInvalidLoopOptions(t *testing.T) {
	for want, m := range map[string]spec.LoopOptions{
		"4 fallbacks, at most 3":               {Fallbacks: make([]spec.Model, 4)},
		"17 results are required, at most 16":  {Require: spec.Require{Evidence: make([]spec.Evidence, 17)}},
		"require.evidence has no tool":         {Require: spec.Require{Evidence: []spec.Evidence{{Contains: "x"}}}},
		"of search must contain has 1025":      {Require: spec.Require{Evidence: []spec.Evidence{{Tool: "search", Contains: strings.Repeat("x", 1025)}}}},
		"it is not a JSON object":              {Require: spec.Require{Schema: `{"type":`}},
		"leads back to itself":                 {Require: spec.Require{Schema: `{"$ref":"#"}`}},
		`"#/$defs/x" at # leads to no schema`:  {Require: spec.Require{Schema: `{"$ref":"#/$defs/x","$defs":{}}`}},
		"cannot validate version":              {Require: spec.Require{Schema: `{"$schema":"http://json-schema.org/draft-04/schema#"}`}},
		"require.tries is 9, it may be 0 to 8": {Require: spec.Require{Tries: 9}},
		"continue.percent is 101":              {Continue: spec.Continue{Tokens: 1, Percent: 101}},
		"continue.tokens is -2":                {Continue: spec.Continue{Tokens: -2}},
		"watch.of is 101":                      {Watch: spec.Watch{Of: 101}},
		"65 polling tools":                     {Watch: spec.Watch{Polling: make([]string, 65)}},
		"breaker.failures is -2":               {Breaker: spec.Breaker{Failures: -2}},
		"context.percent is 96":                {Context: spec.Context{Percent: 96}},
		"tool_retries is 4, it may be -1 to 3": {ToolRetries: 4},
		"a hook has no name":                   {Hooks: make([]spec.Hook, 1)},
	} {
		if err := loopoptions.Check(m); !errors.Is(err, loopoptions.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if err := loopoptions.Check(spec.DefaultLoopOptions()); err != nil {
		t.Error(err)
	}
	off := spec.LoopOptions{Watch: spec.Watch{Of: spec.Off}, Breaker: spec.Breaker{Failures: spec.Off, Forbidden: spec.Off},
		ToolRetries: spec.Off, Continue: spec.Continue{Tokens: spec.Off}}
	if err := loopoptions.Check(off); err != nil {
		t.Error(err)
	}
	got := off.Merge(spec.DefaultLoopOptions())
	if got.Watch.Of > 0 || got.Breaker.Failures > 0 || got.Breaker.Forbidden > 0 || got.ToolRetries > 0 || got.Continue.Tokens > 0 {
		t.Errorf("what is off is on: %+v", got)
	}
}
