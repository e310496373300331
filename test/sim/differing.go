package sim

import (
	"maps"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/model"
)

// otherwise returns how the configuration on the node of a new shell differs from the
// agent's task. A node compares them when it finds the task in the log.
func (s *sim) otherwise(a *actor) map[string]string {
	st := a.shadow.agent
	if s.quiet || !s.on(Differing) || st == nil || st.State.Phase == "" || s.percent(40) {
		return nil
	}
	return oneOf(s.dice, nil,
		map[string]string{"prompt": "2"}, map[string]string{"prompt": "3", "tool/look": ""}, map[string]string{"tool/note": "idempotent:2"},
		map[string]string{"tool/pay": "read:1"}, map[string]string{"route": ""}, map[string]string{"workspace": "", "hooks": "9"})
}

// mayNotPass returns the differences with which an agent may not continue by itself, derived from
// the rule in its documentation and not from the code that enforces it.
func mayNotPass(sh *shell) []string {
	var keys []string
	found, pays := sh.reader().Found, slices.ContainsFunc(sh.state.Agent.State.Task.Tools, func(t model.ToolSpec) bool { return t.Name == "pay" })
	for k, v := range found {
		if k == "prompt" || k == "workspace" || k == "route" && v == "" || k == "tool/pay" && pays && !strings.HasPrefix(v, "effect:") {
			keys = append(keys, k)
		}
	}
	return keys
}

// watchDiffering checks that on a node that differs nothing begins before a person has approved
// exactly this difference.
func (s *sim) watchDiffering(sh *shell, effect any) {
	switch effect.(type) {
	case agent.CallModel, agent.Begin, agent.CallTool:
	default:
		return
	}
	for _, k := range mayNotPass(sh) {
		if !sh.actor.hurt && !slices.Contains(s.ledger.agreed[sh.actor.id], k+"="+sh.reader().Found[k]) {
			s.fail("%s begins %T, and its node has another %s", sh.start, effect, k)
		}
	}
}

// halted reports whether an agent waits because a node differs.
func halted(st *agent.State) bool { return st.Drift.Query != "" && st.Query.Query == st.Drift.Query }

// watchAgreed notes which difference a person approved, and where that happened.
func (s *sim) watchAgreed(a *actor, before, after *agent.State, kind, decision string) {
	if halted(after) && after.Phase != agent.Waiting {
		s.fail("halted in %s by %s, before %s", after.Phase, kind, before.Phase)
	}
	switch {
	case halted(after) && !halted(before):
		s.reach.hit(HaltedDiffering)
		if after.Drift.Spare {
			s.reach.hit(LeaseSpared)
		}
	case halted(before) && !halted(after) && kind == "resumed" && after.Phase != agent.Done:
		s.reach.hit(Relieved)
	case halted(before) && halted(after) && after.Drift.Spare && !before.Drift.Spare:
		s.reach.hit(LeaseSpared)
	case halted(before) && kind == "answered" && decision != "deny" && !halted(after):
		for k, v := range maps.All(before.Drift.Found) {
			s.ledger.agreed[a.id] = append(s.ledger.agreed[a.id], k+"="+v)
		}
	}
}
