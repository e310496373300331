package eval

import (
	"slices"
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/supervisor"
)

// gifts are the optional parts of a case besides a model and tools, and how to remove each
// of them.
var gifts = map[string]struct {
	has  func(c *Case) bool
	take func(c *Case)
}{
	"hooks":  {func(c *Case) bool { return c.Hooks != nil }, func(c *Case) { c.Hooks, c.loopOptions.Hooks = nil, nil }},
	"during": {func(c *Case) bool { return c.Interventions != nil }, func(c *Case) { c.Interventions = nil }},
	"policy": {func(c *Case) bool { return len(c.policy.Rules) > 0 }, func(c *Case) { c.policy = supervisor.Policy{} }},
	"limits": {func(c *Case) bool { return c.Limits != (Limits{}) }, func(c *Case) { c.Limits = Limits{} }},
	"loop_options": {func(c *Case) bool { return c.LoopOptions.Kind != 0 }, func(c *Case) {
		hooks := c.loopOptions.Hooks
		c.loopOptions = spec.DefaultLoopOptions()
		c.loopOptions.ToolRetries, c.loopOptions.Hooks = 0, hooks
	}},
	"the watch": {func(c *Case) bool { return slices.Contains(c.Expected.Events, event.KindLoopDetected) }, func(c *Case) {
		c.loopOptions.Watch = spec.Watch{}
	}},
}

// idle are gifts that a case has to show that they make no difference: a bound
// that is not met, a hook that is not asked.
var idle = map[string][]string{
	"completes_within_budget":             {"limits"},
	"stop_hooks_see_no_error":             {"hooks"},
	"a_failure_that_stays_is_not_retried": {"loop_options"},
	"stop_hook_blocking_reentry":          {"limits"},
	"refund_evidence_is_sufficient":       {"limits", "loop_options"},
	"refund_is_never_issued":              {"limits", "loop_options"},
	"refund_a_person_helps":               {"limits", "loop_options"},
}

// TestEveryPartOfACaseMatters: no case passes by accident. Without its hooks, its
// loop options, its limits, its policy or what happens from outside, it fails.
//
//behaviour:shows J1
func TestEveryPartOfACaseMatters(t *testing.T) {
	t.Parallel()
	cases, err := LoadCases("../../test/evals")
	if err != nil {
		t.Fatal(err)
	}
	var without []Case
	for _, c := range cases {
		for name, g := range gifts {
			if !g.has(&c) || slices.Contains(idle[c.ID], name) {
				continue
			}
			bare := c
			g.take(&bare)
			bare.ID, bare.TimeLimit = c.ID+" without "+name, Duration(2*time.Second)
			without = append(without, bare)
		}
	}
	const parallel = 4 * ParallelDefault // most of them wait for their end
	for _, v := range Run(t.Context(), without, parallel).Verdicts {
		if v.Pass {
			t.Errorf("%s: %s passes all the same", v.File, v.Case)
		}
	}
	t.Logf("%d cases without something", len(without))
}
