package sim

import (
	"maps"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
)

// driftJudge checks that an agent waits on a node that differs until a person approves the difference.
type driftJudge struct {
	*environment
	agreed map[spec.ID][]string // differences that a person approved
}

// mayNotPass returns the differences with which an agent may not continue by itself, derived from
// the rule in its documentation and not from the code that enforces it. A tool that only the history of a handoff
// names is described as one that reads, and differs from none.
func mayNotPass(sh *shell) []string {
	var keys []string
	found, pays := sh.logReader().Found, slices.ContainsFunc(sh.state.Agent.State.Task.Tools, func(t model.ToolSpec) bool { return t.Name == "pay" && t.Class != model.Read })
	for k, v := range found {
		if k == "prompt" || k == "workspace" || k == "route" && v == "" || k == "tool/pay" && pays && !strings.HasPrefix(v, "effect:") {
			keys = append(keys, k)
		}
	}
	return keys
}

// checkBegin checks that on a node that differs nothing begins before a person has approved
// exactly this difference.
func (j *driftJudge) checkBegin(sh *shell, effect any) {
	switch effect.(type) {
	case agent.CallModel, agent.Begin, agent.CallTool:
	default:
		return
	}
	for _, k := range mayNotPass(sh) {
		if !sh.actor.damaged && !slices.Contains(j.agreed[sh.actor.id], k+"="+sh.logReader().Found[k]) {
			j.fail(driftAsksFirst, "%s begins %T, and its node has another %s", sh.start, effect, k)
		}
	}
}

// isHalted reports whether an agent waits because a node differs.
func isHalted(st *agent.State) bool { return st.Suspended.Why == agent.AwaitsDriftAnswer }

// noteApproval notes which difference a person approved, and where that happened.
func (j *driftJudge) noteApproval(a *actor, before, after *agent.State, kind string, decision spec.Decision) {
	if isHalted(after) && after.Phase != agent.Waiting {
		j.fail(driftAsksFirst, "halted in %s by %s, before %s", after.Phase, kind, before.Phase)
	}
	returned := after.Suspended.Then == agent.ThenAttempt && kind == "granted"
	switch {
	case isHalted(after) && !isHalted(before):
		j.reach.hit(placeHaltedDiffering)
		if returned {
			j.reach.hit(placeReservationSpared)
		}
	case isHalted(before) && !isHalted(after) && kind == "resumed" && after.Phase != agent.Done:
		j.reach.hit(placeRelieved)
	case isHalted(before) && returned:
		j.reach.hit(placeReservationSpared)
	case isHalted(before) && kind == "answered" && decision != spec.Deny && !isHalted(after):
		for k, v := range maps.All(before.Drift.Found) {
			j.agreed[a.id] = append(j.agreed[a.id], k+"="+v)
		}
	}
}
