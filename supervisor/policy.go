package supervisor

import (
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
)

// Policy is the stop-veto policy of a run, as data: it is in the run's log, so
// a replay gives the same verdicts, and it can be replaced while the run lives.
type Policy struct {
	Version int    `msgpack:"v,omitempty" json:"version"`
	Rules   []Rule `msgpack:"r,omitempty" json:"rules"`
}

// Rule objects to a proposed stop (On "stop"), or to another turn (On "turn"),
// when all its conditions hold.
type Rule struct {
	Name  string      `msgpack:"n" json:"name"`
	On    string      `msgpack:"o" json:"on"`
	Agent string      `msgpack:"a,omitempty" json:"agent,omitempty"` // id or definition; "" is every agent
	When  []Condition `msgpack:"w,omitempty" json:"when,omitempty"`
	// Any are lists of conditions: with When, all conditions of at least one list hold. Empty: When decides alone.
	Any [][]Condition `msgpack:"an,omitempty" json:"any,omitempty"`
	Why string        `msgpack:"y" json:"why"` // the reason that the model reads
	// Expression and Use are what people wrote instead of conditions: package internal/policy makes the conditions of
	// them before a policy reaches a log. The supervisor reads the conditions only.
	Expression string   `msgpack:"x,omitempty" json:"expression,omitempty"`
	Use        *BuiltIn `msgpack:"u,omitempty" json:"use,omitempty"`
	// Means describes a built-in rule, as a node shows it; the log does not have it.
	Means string `msgpack:"-" json:"means,omitempty"`
	// Source is the file that brought the rule; "": the request of the run.
	Source string `msgpack:"s,omitempty" json:"source,omitempty"`
}

// BuiltIn names a rule that troupe has, with its parameters.
type BuiltIn struct {
	Rule    string   `msgpack:"r" json:"rule"`
	Percent float64  `msgpack:"p,omitempty" json:"percent,omitempty"`
	AfterMS int64    `msgpack:"a,omitempty" json:"after_ms,omitempty"`
	Times   int      `msgpack:"t,omitempty" json:"times,omitempty"`
	Tools   []string `msgpack:"l,omitempty" json:"tools,omitempty"`
}

// When a rule is asked.
const (
	OnStop = "stop"
	OnTurn = "turn"
)

// Verdict is what the rules of a policy decide.
type Verdict struct {
	Vetoed bool
	Rule   string
	Why    string
}

// Decide asks the rules about a stop or a turn; the first rule that holds decides.
func (p Policy) Decide(on string, f PolicyFacts) Verdict {
	for _, r := range p.Rules {
		if r.On == on && r.isAbout(f) && r.holds(f) {
			return Verdict{Vetoed: true, Rule: r.Name, Why: r.Why}
		}
	}
	return Verdict{}
}

func (r Rule) isAbout(f PolicyFacts) bool {
	return r.Agent == "" || r.Agent == string(f.Agent) || r.Agent == f.Name || r.On == OnStop && slices.Contains(f.Answers, r.Agent)
}

func (r Rule) holds(f PolicyFacts) bool {
	return allHold(r.When, f) && (len(r.Any) == 0 || slices.ContainsFunc(r.Any, func(list []Condition) bool { return allHold(list, f) }))
}

func allHold(list []Condition, f PolicyFacts) bool {
	return !slices.ContainsFunc(list, func(c Condition) bool { return !c.holds(f) })
}

// vetoesMax is how often in a row a stop of a member is sent back; the next veto is final.
func vetoesMax(o Opened, m Member) int {
	def, _ := o.findDefinition(m.Name)
	return tighterLimits(def.Limits, o.Agent).VetoesInARow()
}

// handleProposeStop decides on a proposed stop. It is the supervisor's only veto of a stop; the agent's own
// requirements and stop hooks come before it. Vetoes are bounded, and a canceled run is not held up.
func handleProposeStop(s State, from spec.ID, f agent.ProposeStop) (State, []Effect) {
	m, ok := s.Member(from)
	if !ok || m.Done {
		return s, nil
	}
	verdict := s.Run.Policy.Decide(OnStop, stopFacts(s, m, f))
	if !verdict.Vetoed || s.Cancel != nil {
		m.Vetoes = 0
		return s.put(m), []Effect{Tell{To: from, Fact: agent.StopAllowed{Proposal: f.Proposal, By: nameVerdict(s.Run, Verdict{})}}}
	}
	m.Vetoes++
	by := nameVerdict(s.Run, verdict)
	return s.put(m), []Effect{Tell{To: from, Fact: agent.StopVetoed{Proposal: f.Proposal, Why: verdict.Why, Final: m.Vetoes > vetoesMax(s.Run, m), By: by}}} //mutant:veto-limit
}

// nameVerdict names the rule that decides, with the version of the policy; nil: there is no policy.
func nameVerdict(o Opened, v Verdict) *agent.VerdictOrigin {
	if o.Policy.Version == 0 {
		return nil
	}
	return &agent.VerdictOrigin{Version: o.Policy.Version, Rule: v.Rule} //mutant:verdict-without-version
}

// handlePolicySet puts a run under another policy. Versions only rise: a policy whose version is not above the present one
// gets the next.
func handlePolicySet(s State, f PolicySet) State {
	if f.Policy.Version <= s.Run.Policy.Version {
		f.Policy.Version = s.Run.Policy.Version + 1
	}
	s.Run.Policy, s.PolicySetBy, s.PolicySetAt = f.Policy, f.By, s.Now //mutant:policy-change-ignored
	return s.publishEvent(event.KindPolicyApplied, event.PolicyApplied{Version: f.Policy.Version, Rules: len(f.Policy.Rules), By: f.By})
}
