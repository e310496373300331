package supervisor

import (
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/permission"
)

// PermissionsSet takes rights from a live agent and the agents below it, those that begin later included.
type PermissionsSet struct {
	Agent  spec.ID        `msgpack:"a,omitempty"` // "": the root, and so the whole run
	Rights spec.Narrowing `msgpack:"r"`
	By     string         `msgpack:"b,omitempty"` // who sets it
	// ByOwner says that the owner of the run sets it, and not an operator. By cannot: an operator chooses that name.
	ByOwner bool `msgpack:"o,omitempty"`
	// Request is the id of the request, which may come again.
	Request string `msgpack:"q,omitempty"`
}

// Kind is the fact's word in logs.
func (PermissionsSet) Kind() string { return "permissions_set" }

const (
	// narrowingsMax bounds how often operators narrow the rights of one run, and how often its owner does.
	narrowingsMax = 64
	// operatorRulesBytes is the room for permission rules that an owner leaves to operators.
	operatorRulesBytes = 16 << 10
)

// CheckPermissions says why the rights cannot be narrowed in that state; "": they can.
func CheckPermissions(s State, f PermissionsSet) (why string) {
	_, why = narrowingTarget(s, f)
	return why
}

// narrowingTarget returns the agent of a change, and why the change cannot be made; "": it can.
func narrowingTarget(s State, f PermissionsSet) (m Member, why string) {
	id := f.target()
	m, ok := s.Member(id)
	if err := permission.CheckNarrowingBounds(f.Rights); err != nil {
		return m, err.Error()
	}
	mode, holds := f.Rights.Mode, permission.StrictestMode(m.permissions)
	rights := f.Rights.Permissions()
	switch {
	case !ok:
		return m, fmt.Sprintf("there is no agent %.64q", id)
	case s.Cancel != nil || s.Phase != Live || m.Done:
		return m, whyEnding(s, m)
	case s.Run.Permissions == nil:
		return m, "the run has no permissions that could be narrowed"
	case permission.WidensMode(mode, holds): //mutant:live-rights-widen
		return m, fmt.Sprintf("the rights of a live agent only become narrower: %s (%s) has the mode %s, and %s is not stricter", m.ID, m.Name, holds, mode)
	case permission.Contains(m.permissions, rights):
		return m, fmt.Sprintf("these rules bind %s (%s) already", m.ID, m.Name)
	case countNarrowings(s, f.ByOwner) >= narrowingsMax:
		return m, fmt.Sprintf("the rights of a run are narrowed at most %d times by its owner, and as often by operators", narrowingsMax)
	}
	if err := permission.CheckNarrowing(f.Rights); err != nil {
		return m, err.Error()
	}
	room := rulesBytesMax
	if f.ByOwner {
		room -= operatorRulesBytes
	}
	for _, c := range withBelow(s.roster, m) {
		if rulesBytes(append(slices.Clip(c.permissions), rights)) > room {
			return m, fmt.Sprintf("%s (%s) would have more than %d bytes of permission rules", c.ID, c.Name, room)
		}
	}
	return m, ""
}

// countNarrowings counts what the owner of the run has set, or what operators have.
func countNarrowings(s State, byOwner bool) (n int) {
	for _, f := range s.Narrowings {
		if f.ByOwner == byOwner {
			n++
		}
	}
	return n
}

func (f PermissionsSet) target() spec.ID {
	if f.Agent == "" {
		return spec.Root
	}
	return f.Agent
}

// withBelow lists a member and all below it.
func withBelow(r roster, m Member) []Member {
	list := []Member{m}
	r.eachBelow(m.ID, func(c Member) { list = append(list, c) })
	return list
}

// handlePermissionsSet takes rights from an agent and those below it. Later children have what their parent has: permissionsOf.
func handlePermissionsSet(s State, f PermissionsSet) (State, []Effect) {
	m, why := narrowingTarget(s, f)
	if why != "" { //mutant:narrowing-dropped
		return s.publishEvent(event.KindWarningRaised, event.Warning{What: fmt.Sprintf("the rights of %.64s were not narrowed", f.target()), Why: why, Live: s.Live}), nil
	}
	rights := f.Rights.Permissions()
	var fx []Effect
	reached := withBelow(s.roster, m) //mutant:narrowing-stays-above
	for _, c := range reached {
		if permission.Contains(c.permissions, rights) {
			continue
		}
		c.permissions = append(slices.Clip(c.permissions), rights) //mutant:later-children-are-not-narrowed
		if s = s.put(c); !c.Done {
			fx = append(fx, Tell{To: c.ID, Fact: agent.PermissionsNarrowed{Rights: f.Rights, By: f.By}})
		}
	}
	f.Agent = m.ID
	s.Narrowings = append(slices.Clip(s.Narrowings), f)
	return s.publishEvent(event.KindPermissionsChanged, event.PermissionsChanged{Agent: m.ID, Mode: f.Rights.Mode, Ask: ruleTexts(f.Rights.Ask),
		Deny: ruleTexts(f.Rights.Deny), Agents: len(fx), By: f.By}), fx
}

func ruleTexts(rules []spec.PermissionRule) (texts []string) {
	for _, r := range rules {
		texts = append(texts, r.Text)
	}
	return texts
}

// ModeOf is the strictest of the modes that decide about the calls of a member.
func ModeOf(m Member) spec.PermissionMode { return permission.StrictestMode(m.permissions) }

// IsNarrowedBy reports whether a request has narrowed rights already.
func IsNarrowedBy(s State, request string) bool {
	return slices.ContainsFunc(s.Narrowings, func(f PermissionsSet) bool { return request != "" && f.Request == request })
}
