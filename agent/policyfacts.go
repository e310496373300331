package agent

import (
	"fmt"
	"maps"
	"slices"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
)

// VerdictOrigin names what decided about a stop or a turn: a version of the run's policy, and the rule that spoke
// against it.
type VerdictOrigin struct {
	Version int    `msgpack:"v"`
	Rule    string `msgpack:"r,omitempty"`
}

// Event is the origin as events show it; nil: there is none.
func (o *VerdictOrigin) Event() *event.PolicyVerdict {
	if o == nil {
		return nil
	}
	return &event.PolicyVerdict{Version: o.Version, Rule: o.Rule}
}

// explain adds the origin to a reason, for people.
func (o *VerdictOrigin) explain(why string) string {
	if o == nil {
		return why
	}
	return fmt.Sprintf("%s (rule %s of policy version %d)", why, o.Rule, o.Version)
}

// StopAllowed lets a proposed stop take effect.
type StopAllowed struct {
	Proposal int            `msgpack:"p"`
	By       *VerdictOrigin `msgpack:"by,omitempty"`
}

// StopVetoed rejects a proposed stop; Final ends the run instead, because the veto
// was repeated too often.
type StopVetoed struct {
	Proposal int            `msgpack:"p"`
	Why      string         `msgpack:"w"`
	Final    bool           `msgpack:"f,omitempty"`
	By       *VerdictOrigin `msgpack:"by,omitempty"`
}

// decidedBy is the rule that caused the granted turn; nil: no rule did.
func decidedBy(s *State, f Granted) *VerdictOrigin {
	if s.Transition == spec.StopVeto {
		return s.VetoedBy
	}
	return f.By
}

// PolicyFacts is what only the agent knows of itself, and the rules of a policy may ask about.
type PolicyFacts struct {
	Loops       int `msgpack:"l,omitempty"` // that loop detection has found
	FutileCalls int `msgpack:"f,omitempty"` // the newest calls in a row that brought nothing new
}

// policyFacts are the facts of an agent; nil: all are zero.
func policyFacts(s *State) *PolicyFacts {
	f := PolicyFacts{Loops: s.LoopDetection.Loops}
	for _, c := range slices.Backward(s.LoopDetection.Last) {
		if !c.Futile {
			break
		}
		f.FutileCalls++
	}
	if f == (PolicyFacts{}) {
		return nil
	}
	return &f
}

// resultsMax bounds the names of tools in a proposal.
const resultsMax = 128

// newProposal proposes a stop to the supervisor.
func newProposal(s *State) ProposeStop {
	return ProposeStop{Proposal: s.Proposal, Text: s.finalAnswer(), Facts: policyFacts(s), Results: s.toolsWithResults()}
}

// toolsWithResults are the tools with a successful result in the record, in order.
func (t transcript) toolsWithResults() []string {
	names, found := map[string]string{}, map[string]bool{}
	for _, m := range t.History {
		for _, c := range m.Calls {
			names[c.ID] = c.Name
		}
		for _, r := range m.Results {
			if name := names[r.Call]; name != "" && !r.Error && !m.Tombstone {
				found[name] = true
			}
		}
	}
	list := slices.Sorted(maps.Keys(found))
	return list[:min(len(list), resultsMax)]
}
