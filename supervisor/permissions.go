package supervisor

import (
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/permission"
)

// permissionsOf are the permissions of an agent: its own, and those of its ancestors. Each call is decided by
// all of them, and the strictest counts, so that no agent may do what its parent may not. nil: the run
// has no permissions.
func (o Opened) permissionsOf(def Definition, parent []spec.Permissions) []spec.Permissions {
	if o.Permissions == nil {
		return nil
	}
	list := []spec.Permissions{permission.Merge(*o.Permissions, def.Permissions)}
	for _, p := range parent { //mutant:permissions-not-inherited
		if !permission.Contains(list, p) {
			list = append(list, p)
		}
	}
	return list
}

// userNotes is the memory of an agent whose notes are the user's: its prompt lists them.
const userNotes = "user"

// keepsUserNotes reports whether a child would bring notes of the user below an agent whose
// file anyone may have written.
func keepsUserNotes(child spec.Task, parent Member) bool {
	return child.Memory == userNotes && slices.ContainsFunc(parent.permissions, func(p spec.Permissions) bool { return p.NoUserNotes })
}

// rulesBytesMax bounds the permissions of one child together with those of its ancestors, so that its task fits
// an entry.
const rulesBytesMax = 80 << 10

func rulesBytes(list []spec.Permissions) (size int) {
	for _, p := range list {
		size += permission.RuleBytes(p)
	}
	return size
}

// addedRulesMax bounds the rules that people add to one run.
const addedRulesMax = 256

// handleAllowRule records a rule that a person has added in an answer to an agent, and passes it on to all others.
func handleAllowRule(s State, from spec.ID, f agent.AllowRule) (State, []Effect) {
	if _, ok := s.Member(from); !ok || s.Phase != Live || len(s.AddedRules) >= addedRulesMax ||
		slices.ContainsFunc(s.AddedRules, func(r spec.PermissionRule) bool {
			return r.Text == f.Rule.Text && r.Approvals >= f.Rule.Approvals && (r.AllowsTainted || !f.Rule.AllowsTainted)
		}) {
		return s, nil
	}
	s.AddedRules = append(slices.Clip(s.AddedRules), f.Rule)
	fx := s.roster.tellLive(agent.RuleAllowed(f))
	return s, slices.DeleteFunc(fx, func(e Effect) bool { t, ok := e.(Tell); return ok && t.To == from })
}
