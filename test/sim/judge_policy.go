package sim

import (
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// policyJudge keeps the policy of the run by itself: from the first entry, and from each entry that sets another.
type policyJudge struct {
	*environment
	opened  bool
	current supervisor.Policy
	applied []appliedPolicy // in the order of the log
}

// appliedPolicy is a policy and the index of the entry that brought it.
type appliedPolicy struct {
	at     uint64
	policy supervisor.Policy
}

func newPolicyJudge(p *population) *policyJudge { return &policyJudge{environment: p.environment} }

// noteFact notes a policy that an entry brings. A log that has lost its tail continues with entries of the same
// indexes: what the lost ones brought is not in force any more.
func (j *policyJudge) noteFact(p *population, f activation.Fact) {
	j.applied = slices.DeleteFunc(j.applied, func(a appliedPolicy) bool { return a.at > f.N })
	if n := len(j.applied); n > 0 {
		j.current = j.applied[n-1].policy
	}
	switch f.Kind {
	case "opened":
		if o := decodeFact[supervisor.Opened](p, f); !j.opened {
			j.current, j.opened = o.Policy, true
			j.applied = append(j.applied, appliedPolicy{f.N, j.current})
		}
	case "policy_set":
		if n := len(j.applied); n > 1 && j.applied[n-1].at == f.N { // read again, or in place of a lost one
			j.current = j.applied[n-2].policy
			j.applied = j.applied[:n-1]
		}
		set := decodeFact[supervisor.PolicySet](p, f).Policy
		set.Version = max(set.Version, j.current.Version+1)
		j.current = set
		j.applied = append(j.applied, appliedPolicy{f.N, set})
	}
}

// checkVerdict checks that a verdict follows the policy in force, and names its version and a rule that it has.
func (j *policyJudge) checkVerdict(after *supervisor.State, f activation.Fact, t activation.OutboxMessage) {
	if !j.opened || f.Kind != (agent.ProposeStop{}).Kind() {
		return
	}
	vetoed := t.Kind == agent.StopVetoed{}.Kind()
	var v agent.StopVetoed // StopAllowed has the same names of fields
	if err := mailbox.Unmarshal(t.Body, &v); err != nil {
		j.fail(factsAreReadable, "%s: %v", t.Kind, err)
	}
	who := t.To.Agent()
	always := slices.ContainsFunc(j.current.Rules, func(r supervisor.Rule) bool {
		return r.On == supervisor.OnStop && r.Agent == "" && len(r.When)+len(r.Any) == 0
	})
	switch {
	case always && !vetoed && after.Cancel == nil:
		j.fail(policyInForceDecides, "%s may stop, and a rule of policy version %d vetoes every stop", who, j.current.Version)
	case j.current.Version == 0:
	case v.By == nil:
		j.fail(policyInForceDecides, "the verdict for %s names no policy, version %d is in force", who, j.current.Version)
	case v.By.Version != j.current.Version:
		j.fail(policyInForceDecides, "the verdict for %s names policy version %d, and %d is in force", who, v.By.Version, j.current.Version)
	case vetoed && !slices.ContainsFunc(j.current.Rules, func(r supervisor.Rule) bool { return r.Name == v.By.Rule && r.Why == v.Why }):
		j.fail(policyInForceDecides, "the rule %q that vetoes the stop of %s is none of policy version %d", v.By.Rule, who, j.current.Version)
	}
}
