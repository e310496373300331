package permission

import (
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
)

// ByPerson is the author of a decision of a person without a name.
const ByPerson = "a person"

// ApprovalsMax is the most that Permissions.Approvals may be.
const ApprovalsMax = 2

// IsNamed reports whether an approval says who gives it. Of two approvals without a name nobody can tell whether two
// people gave them, so a question that two people must approve accepts none.
func IsNamed(by string) bool { return strings.TrimSpace(by) != "" && by != ByPerson }

// IsSamePerson reports whether two names of people are the same.
func IsSamePerson(a, b string) bool {
	return strings.EqualFold(strings.Join(strings.Fields(a), " "), strings.Join(strings.Fields(b), " "))
}

// addedByEnough are the rules that as many people have added as must approve a call: a rule that one person has added in
// an answer to another agent does not approve the calls of an agent that needs two.
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
