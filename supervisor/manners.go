package supervisor

import (
	"cmp"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
)

// manners of a member: what its definition says goes over what the run says.
// What is required of the run's answer, and how much it is to use up, was said
// with the goal: it is about the root, whose definition may ask for more, and a
// child has only what its own definition says.
func (s State) manners(depth int, def Definition) agent.Manners {
	run := s.Run.Manners
	goal, use := run.Require, run.Continue
	run.Require, run.Continue = agent.Require{}, agent.Continue{}
	m := def.Manners.Over(run)
	if depth > 0 {
		return m
	}
	m.Require.Evidence = slices.Concat(goal.Evidence, m.Require.Evidence)
	m.Require.Schema = cmp.Or(goal.Schema, m.Require.Schema)
	m.Require.Tries = cmp.Or(goal.Tries, m.Require.Tries)
	if use != (agent.Continue{}) {
		m.Continue = use
	}
	return m
}

// versions are those of one agent: the run's, with its own prompt and route.
func (s State) versions(def Definition) map[string]string {
	if s.Run.Hashes == nil {
		return nil
	}
	route := s.Run.Model.Name
	if def.Model != nil {
		route = def.Model.Name
	}
	own := map[string]string{agent.PromptVersion: def.Hash, agent.RouteVersion: s.Run.Hashes[agent.RouteOf(route)]}
	for k, v := range s.Run.Hashes {
		if !strings.HasPrefix(k, agent.RouteOf("")) {
			own[k] = v
		}
	}
	return own
}
