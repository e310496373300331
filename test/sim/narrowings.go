package sim

import (
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/permission"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

const (
	narrowingsEvery = 8 // which of the seeds narrow rights: of those with permissions, see permissionsEvery
	narrowingsAt    = 4
	narrowingSteps  = 7 // between two changes
)

// narrowRights takes rights from an agent and those below it, or tries to: the agent may have ended, and the mode may be one
// that is not stricter.
func (in *injector) narrowRights() {
	super := in.population.super
	st := super.shadow.super.State
	if st.Phase != supervisor.Live || super.damaged || !in.percent(40) {
		return
	}
	var members []spec.ID
	st.Members(func(m supervisor.Member) {
		if !m.Done || in.percent(10) {
			members = append(members, m.ID)
		}
	})
	if len(members) == 0 {
		return
	}
	f := supervisor.PermissionsSet{Agent: members[in.IntN(len(members))], By: "user"}
	rule := spec.PermissionRule{Text: oneOf(in.dice, "look", "note", "pay", "pay", "wipe", "delegate"), From: "set by user"}
	if id, tool := in.beginningCall(); tool != "" && in.percent(60) {
		f.Agent, rule.Text = id, tool
	}
	switch in.IntN(6) {
	case 0, 1:
		f.Rights.Deny = append(f.Rights.Deny, rule)
	case 2, 3:
		f.Rights.Ask = append(f.Rights.Ask, rule)
	case 4:
		f.Rights.Mode = oneOf(in.dice, spec.ModePlan, spec.ModeDontAsk, spec.ModeDefault, spec.ModeAcceptEdits, spec.ModeBypass)
	default:
		f.Rights.Mode, f.Rights.Ask = oneOf(in.dice, spec.ModeDontAsk, spec.ModeDefault), append(f.Rights.Ask, rule)
	}
	in.store.appendCommand(super, f.Kind(), f)
}

// beginningCall is a call that is about to start, and its agent: a change may come in between.
func (in *injector) beginningCall() (id spec.ID, tool string) {
	for _, a := range in.population.actors {
		if a.shadow.agent == nil || a.shadow.agent.State.Phase != agent.Acting {
			continue
		}
		for _, c := range a.shadow.agent.State.Calls {
			if c.Stage == agent.Starting || c.Stage == agent.Gated {
				id, tool = a.id, c.Name
			}
		}
	}
	return id, tool
}

// narrowingsOf are the narrowings with which a task begins.
func narrowingsOf(t spec.Task) (list []spec.Narrowing) {
	for _, p := range t.Permissions {
		if p.Narrows {
			list = append(list, spec.Narrowing{Mode: p.Mode, Ask: p.Ask, Deny: p.Deny})
		}
	}
	return list
}

// noteNarrowing notes what was taken from the agent.
func (j *permissionJudge) noteNarrowing(before *agent.State, f agent.PermissionsNarrowed) {
	if before.Phase == agent.Done || before.Phase == "" {
		return
	}
	j.narrowed = append(j.narrowed, f.Rights)
	if slices.ContainsFunc(before.Calls, func(c agent.Call) bool { return c.Stage == agent.Gated || c.Stage == agent.Starting }) {
		j.reach.hit(placeNarrowedAtAGate)
	}
}

// decideNarrowed is what the narrowings of an agent say about a tool, and whether one of them says that nobody is asked. Of a log
// that has lost entries only what is left counts.
func (j *permissionJudge) decideNarrowed(tool string, class model.Class) (d spec.HookDecision, asksNobody bool) {
	list := j.narrowed
	if j.actor.damaged && j.actor.shadow.agent != nil {
		list = narrowingsOf(j.actor.shadow.agent.State.Task)
	}
	asks := false
	for _, n := range list {
		names := func(rules []spec.PermissionRule) bool {
			return slices.ContainsFunc(rules, func(r spec.PermissionRule) bool { return r.Text == tool })
		}
		if names(n.Deny) || n.Mode == spec.ModePlan && class != model.Read && tool != "ask_human" {
			return spec.HookDeny, false
		}
		asks, asksNobody = asks || names(n.Ask), asksNobody || n.Mode == spec.ModeDontAsk
	}
	switch {
	case asks && asksNobody:
		return spec.HookDeny, true
	case asks:
		return spec.HookAsk, false
	}
	return spec.HookPass, asksNobody
}

// narrowingsBelow is a number of narrowings below every limit of the supervisor.
const narrowingsBelow = 16

// narrowingJudge knows what was taken from which agents, by the log of the run.
type narrowingJudge struct {
	population *population
	set        map[spec.ID][]spec.Narrowing
}

// noteFact checks that a change reaches each live agent of the subtree, and that none makes a mode less strict.
func (j *narrowingJudge) noteFact(before *supervisor.State, f activation.Fact, out activation.Stepped) {
	if f.Kind != (supervisor.PermissionsSet{}).Kind() || before.Phase == "" || j.population.super.damaged { // a log with a gap has forgotten some
		return
	}
	set := decodeFact[supervisor.PermissionsSet](j.population, f)
	target, ok := before.Member(set.Agent)
	told := map[spec.ID]bool{}
	for _, m := range out.Messages {
		if m.Kind == (agent.PermissionsNarrowed{}).Kind() {
			told[spec.ID(m.To.Agent())] = true
		}
	}
	takesPart := ok && !target.Done && before.Cancel == nil && before.Phase == supervisor.Live
	rank := func(m spec.PermissionMode) int { return slices.Index(spec.PermissionModes, m) }
	holds := j.modeOf(before, target)
	widens := set.Rights.Mode != "" && rank(set.Rights.Mode) >= rank(holds)
	if len(told) == 0 {
		if takesPart && !widens && !j.has(set.Agent, set.Rights) && len(before.Narrowings) < narrowingsBelow && permission.CheckNarrowingBounds(set.Rights) == nil {
			j.population.fail(narrowingsReachAll, "the rights of %s should have become narrower: %+v", set.Agent, set.Rights)
		}
		j.population.reach.hit(placeNarrowingRefused)
		return
	}
	if !takesPart {
		j.population.fail(narrowingsReachAll, "the rights of %s become narrower, and it takes no part in the run", set.Agent)
	}
	if widens {
		j.population.fail(narrowingsReachAll, "the mode of %s was %s and is set to %s", set.Agent, holds, set.Rights.Mode)
	}
	before.Members(func(m supervisor.Member) {
		if m.Done || m.ID != set.Agent && !slices.Contains(m.ID.Above(), set.Agent) || told[m.ID] || j.has(m.ID, set.Rights) {
			return
		}
		j.population.fail(narrowingsReachAll, "the rights of %s become narrower, and those of %s below it do not", set.Agent, m.ID)
	})
	j.set[set.Agent] = append(j.set[set.Agent], set.Rights)
	j.population.reach.hit(placeRightsNarrowed)
	if len(told) > 1 {
		j.population.reach.hit(placeRightsNarrowedBelow)
	}
}

// modeOf is the strictest of the modes of an agent, of those above it and of the run, and of what was set.
func (j *narrowingJudge) modeOf(st *supervisor.State, m supervisor.Member) spec.PermissionMode {
	strictest := spec.ModeBypass
	note := func(mode spec.PermissionMode) {
		if slices.Index(spec.PermissionModes, mode) < slices.Index(spec.PermissionModes, strictest) {
			strictest = mode
		}
	}
	for at, ok := m, true; ok && at.ID != ""; at, ok = st.Member(at.Parent) {
		mode := st.Run.Permissions.Mode
		for _, d := range st.Run.Definitions {
			if d.Name == at.Name && d.Permissions != nil && d.Permissions.Mode != "" {
				if mode == "" {
					mode = d.Permissions.Mode
				} else {
					note(d.Permissions.Mode)
				}
			}
		}
		if mode == "" {
			mode = spec.ModeDefault
		}
		note(mode)
		for _, n := range j.set[at.ID] {
			if n.Mode != "" {
				note(n.Mode)
			}
		}
		if at.ID == spec.Root {
			break
		}
	}
	return strictest
}

// has reports whether a narrowing was set for an agent or one above it.
func (j *narrowingJudge) has(id spec.ID, n spec.Narrowing) bool {
	for _, at := range append(id.Above(), id) {
		if slices.ContainsFunc(j.set[at], func(o spec.Narrowing) bool { return isSameNarrowing(o, n) }) {
			return true
		}
	}
	return false
}

func isSameNarrowing(a, b spec.Narrowing) bool {
	return a.Mode == b.Mode && slices.Equal(a.Ask, b.Ask) && slices.Equal(a.Deny, b.Deny)
}

// checkTask checks that an agent begins with what was taken from those above it.
func (j *narrowingJudge) checkTask(m activation.OutboxMessage) {
	var s agent.Submitted
	if mailbox.Unmarshal(m.Body, &s) != nil || j.population.super.damaged {
		return
	}
	has := narrowingsOf(s.Task)
	for _, above := range s.Task.ID.Above() {
		for _, n := range j.set[above] {
			if !slices.ContainsFunc(has, func(o spec.Narrowing) bool { return isSameNarrowing(o, n) }) {
				j.population.fail(rightsShrink, "%s begins without what was taken from %s: %+v", s.Task.ID, above, n)
			}
			j.population.reach.hit(placeBegunNarrowed)
		}
	}
}
