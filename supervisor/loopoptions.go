package supervisor

import (
	"cmp"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
)

// mergeLoopOptions returns the loop options of a member: those of its definition take
// precedence over the run's. The run's requirements for the answer, and its budget
// of tokens to use up, came with the goal: they concern the root, whose definition
// may require more, and a child has only the requirements of its own definition.
func (o Opened) mergeLoopOptions(depth int, def Definition) spec.LoopOptions {
	run := o.LoopOptions
	goal, use := run.Require, run.Continue
	run.Require, run.Continue = spec.Require{}, spec.Continue{}
	m := def.LoopOptions.Merge(run)
	if depth > 0 {
		return m
	}
	m.Require.Evidence = slices.Concat(goal.Evidence, m.Require.Evidence)
	m.Require.Schema = cmp.Or(goal.Schema, m.Require.Schema)
	m.Require.Tries = cmp.Or(goal.Tries, m.Require.Tries)
	if use != (spec.Continue{}) {
		m.Continue = use
	}
	return m
}

// configVersions returns the versions of one agent: the run's, with the agent's own prompt and route.
func (o Opened) configVersions(def Definition) map[string]string {
	if o.Hashes == nil {
		return nil
	}
	route := o.Model.Name
	if def.Model != nil {
		route = def.Model.Name
	}
	own := map[string]string{spec.PromptVersion: def.Hash, spec.RouteVersion: o.Hashes[spec.RouteOf(route)]}
	for k, v := range o.Hashes {
		if !strings.HasPrefix(k, spec.RouteOf("")) {
			own[k] = v
		}
	}
	return own
}
