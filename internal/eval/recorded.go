package eval

import (
	"context"
	"errors"
	"slices"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/hook"
	"github.com/troupe-run/troupe/internal/loopoptions"
	"github.com/troupe-run/troupe/internal/policy"
	"github.com/troupe-run/troupe/supervisor"
)

// A case may be made of a recorded run ("troupe fixture"): it opens the run with the entry that the run
// began with, its replies and answers name the agents and calls that got them, and it knows how the run
// ended.

// RecordedHook is the answer of one hook at one point of one agent.
type RecordedHook struct {
	Agent    string            `yaml:"agent,omitempty"` // its id
	ID       string            `yaml:"id,omitempty"`    // of the point: "stop.2"
	Hook     string            `yaml:"hook,omitempty"`  // its name
	Decision spec.HookDecision `yaml:"decision,omitempty"`
	Text     string            `yaml:"text,omitempty"`
	Shows    string            `yaml:"shows,omitempty"` // what the question about the call showed
	Args     string            `yaml:"args,omitempty"`  // pre_tool: JSON
	Fails    string            `yaml:"fails,omitempty"` // it failed with this message instead
}

// readRun reads the first entry of a recorded run.
func (d caseDecoder) readRun(c *Case, line int) error {
	if c.Opened.Kind == 0 {
		if c.HookAnswers != nil || c.Recorded != nil {
			return d.badFile(line, "case %s: hook_answers and recorded belong to a case with a run", c.ID)
		}
		return nil
	}
	if c.Model.Kind == 0 {
		return d.badFile(line, "case %s: a case with a run needs a model", c.ID)
	}
	if c.Agents != nil || c.Limits != (Limits{}) || c.LoopOptions.Kind != 0 || c.Hooks != nil || c.Policy.Kind != 0 || c.Window != 0 ||
		c.Price != (Price{}) || c.Allowed != nil || c.Denied != nil || c.FirstToolTurn || c.Models != nil {
		return d.badFile(line,
			"case %s: run takes the place of models, agents, limits, loop_options, hooks, policy, window, price and the "+
				"tools of the root", c.ID)
	}
	o := &supervisor.Opened{}
	if err := d.decodeInto(c.Opened, "case "+c.ID+": run", o); err != nil {
		return err
	}
	o.Run, o.Goal, o.Caller = runName, c.Goal, "eval"
	if !slices.ContainsFunc(o.Definitions, func(def supervisor.Definition) bool { return def.Name == o.Root }) {
		return d.badFile(c.Opened.Line, "case %s: run: the root %q is not among the definitions", c.ID, o.Root)
	}
	for _, options := range loopOptionsOf(o) {
		for i := range options.Hooks {
			options.Hooks[i].Command = "" // hook_answers has what it answered
		}
		if err := loopoptions.Check(*options); err != nil {
			return d.badFile(c.Opened.Line, "case %s: run: %v", c.ID, err)
		}
	}
	compiled, err := policy.Compile(o.Policy) // the case has rules as people write them
	if err != nil {
		return d.badFile(c.Opened.Line, "case %s: run: %v", c.ID, err)
	}
	o.Policy = compiled
	c.opened = o
	return nil
}

// loopOptionsOf are the loop options of a run and of its definitions.
func loopOptionsOf(o *supervisor.Opened) []*spec.LoopOptions {
	list := []*spec.LoopOptions{&o.LoopOptions}
	for i := range o.Definitions {
		list = append(list, &o.Definitions[i].LoopOptions)
	}
	return list
}

// checkRecorded checks the recorded end.
func (d caseDecoder) checkRecorded(c *Case, line int) error {
	if c.Recorded == nil {
		return nil
	}
	return d.checkExpectation(c, *c.Recorded, line)
}

// recordedFuncs are the hooks of a recorded run.
func (h *scriptedHooks) recordedFuncs() map[string]hook.Func {
	all := map[string]hook.Func{spec.PermissionHook: h.recordedAnswer}
	for _, options := range loopOptionsOf(h.c.opened) {
		for _, about := range options.Hooks {
			all[about.Name] = h.recordedAnswer
		}
	}
	return all
}

// recordedAnswer returns what the hook answered at the same point. At a point without an answer it passes,
// and a question about a call is asked.
func (h *scriptedHooks) recordedAnswer(_ context.Context, c hook.Call) (spec.HookAnswer, error) {
	i := slices.IndexFunc(h.c.HookAnswers, func(a RecordedHook) bool {
		return a.Agent == c.Agent && a.ID == c.ID && a.Hook == c.Hook.Name
	})
	if i < 0 {
		if c.Hook.Name == spec.PermissionHook {
			return spec.HookAnswer{Decision: spec.HookAsk}, nil
		}
		return spec.HookAnswer{}, nil
	}
	a := h.c.HookAnswers[i]
	if a.Fails != "" {
		return spec.HookAnswer{}, errors.New(a.Fails)
	}
	return spec.HookAnswer{Decision: a.Decision, Text: a.Text, Shows: a.Shows, Args: a.Args}, nil
}

// compareRecorded compares the end of the case with that of the run that it was made of.
func (v *Verdict) compareRecorded(recorded *Expected, r caseRecord) {
	if recorded == nil {
		return
	}
	v.Unlike = recorded.listDifferences(r)
	same := len(v.Unlike) == 0
	v.AsRecorded = &same
}
