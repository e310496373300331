package agent

import (
	"slices"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/permission"
)

// PermissionsNarrowed takes rights from a live agent. The supervisor sends it for an operator, to the agent and to those below
// it. It holds for each call that begins after it. A call that runs goes on. A call that waits at its gate is decided about
// again before it begins. An approval counts only for the reason that the person read. A call that was about to start, and may
// not any more, ends: the entry Started that its shell may append begins nothing.
type PermissionsNarrowed struct {
	Rights spec.Narrowing `msgpack:"r"`
	By     string         `msgpack:"b,omitempty"`
}

// Kind is the fact's word in logs.
func (PermissionsNarrowed) Kind() string { return "permissions_narrowed" }

// handlePermissionsNarrowed adds a narrowing to the permissions of the task. The permissions of an agent only grow in number,
// and the strictest of them counts, so that nothing that it could not do before becomes possible.
func handlePermissionsNarrowed(s *State, f PermissionsNarrowed, bySupervisor bool) (*State, []Effect) {
	if !bySupervisor || s.Phase == Done || s.Task.Permissions == nil {
		return s, nil
	}
	s.Task.Permissions = append(slices.Clip(s.Task.Permissions), f.Rights.Permissions())
	s.permissions = compilePermissions(s.Task) //mutant:narrowing-never-holds
	ended := false
	for i, c := range s.Calls {
		if c.Stage == Starting { //mutant:started-by-earlier-rights
			refused := false
			s, refused = refuseNarrowed(s, i)
			ended = ended || refused
		}
	}
	if ended && s.Phase == Acting {
		return advanceCalls(s)
	}
	return s, nil
}

// wasNarrowedSince reports whether the agent has lost rights since its permissions decided about a call.
func wasNarrowedSince(s *State, c Call) bool {
	return c.Gate.Permit.Rights != len(s.Task.Permissions)
}

// refuseNarrowed ends a call that was about to start, if the agent has lost the right to it since; refused is false if it may start.
func refuseNarrowed(s *State, i int) (next *State, refused bool) {
	c := s.Calls[i]
	v, why := s.decidePermission(c), ""
	query, err := permissionQuery(v)
	approved := c.Gate.Permit.Asked && err == nil && c.Gate.Permit.Query == query
	switch {
	case v.Decision == permission.Deny:
		why = "never started: denied: " + v.Why
	case v.Decision == permission.Ask && !approved, v.Decision == permission.AllowConfined && c.Gate.Permit.Query == "":
		why = "never started: the rights of this agent were narrowed before it began: " + v.Why + ". Call it again to have a person asked"
	default:
		return s, false
	}
	s.events.publishVerdict(c, spec.HookDeny, v, s.tools.digest(c))
	c = c.endUnbegun(why)
	c.Disposition, c.Synthetic = refusedByRule, ""
	return s.withCall(i, c), true
}
