package permission

import (
	"slices"

	"github.com/troupe-run/troupe/agent/spec"
)

// ApprovalsMax is the most that Permissions.Approvals may be.
const ApprovalsMax = 2

// addedByEnough are the rules that as many people have added as must approve a call: a rule that one person has added
// in an answer to another agent does not approve the calls of an agent that needs two.
func (s *Set) addedByEnough(added []spec.PermissionRule) []spec.PermissionRule {
	n := s.Approvals()
	if n <= 1 {
		return added
	}
	return slices.DeleteFunc(slices.Clone(added), func(r spec.PermissionRule) bool { return max(r.Approvals, 1) < n })
}

// Approvals is how many different people must approve a call that is asked about: the most that the permissions of the
// agent and of its ancestors want.
func (s *Set) Approvals() int {
	most := 1
	if s != nil {
		for _, p := range s.list {
			most = max(most, p.Permissions.Approvals)
		}
	}
	return most
}
