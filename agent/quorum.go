package agent

import (
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/permission/person"
)

// A question about a call may need the approval of two different people (spec.Permissions.Approvals). Each approval
// is an entry of the log. After the first one the agent asks again, and the question names the first approver. A
// denial, a skip and a text decide at once.

// needApprovals makes a question about a call one that as many people must approve as the permissions say.
func needApprovals(s *State, q Park) Park {
	if n := s.permissions.Approvals(); n > 1 {
		q.Approvals = n
	}
	return q
}

// withApprovals is a rule that as many people have added as the permissions want.
func withApprovals(s *State, r spec.PermissionRule) spec.PermissionRule {
	if n := s.permissions.Approvals(); n > 1 {
		r.Approvals = n
	}
	return r
}

// isApproval reports whether an answer is one of the approvals that the question needs.
func (q Park) isApproval(f Answered) bool { return q.Approvals > 1 && f.Decision == spec.Approve }

// isSecond reports whether an approval is that of another person than the first one.
func (q Park) isSecond(f Answered) bool {
	if !person.IsNamed(f.By) { //mutant:unnamed-approval-counts
		return false
	}
	return q.ApprovedBy != "" && !person.IsSamePerson(q.ApprovedBy, f.By) //mutant:one-person-approves-twice
}

// keepApproval keeps the first of two approvals and asks for the other one. An approval without a name, and another
// one of the same person, change nothing.
func keepApproval(s *State, f Answered) (*State, []Effect) {
	q := s.Suspended.Question
	if q.ApprovedBy != "" || !person.IsNamed(f.By) {
		return s, nil
	}
	s.events.publishAnswer(f, q)
	q.ApprovedBy, q.ApprovedAlways, q.ApprovedRequest = f.By, f.Always, f.Request
	s.Suspended.Question = q
	s.events.publishQuestion(q)
	return s, []Effect{q}
}

// combineApprovals is the second approval of a question. It adds the rule for further calls
// only if both approvals say so.
func (q Park) combineApprovals(f Answered) Answered {
	if f.Always != q.ApprovedAlways {
		f.Always = ""
	}
	return f
}

// deciders names the people who have decided by an answer.
func (q Park) deciders(f Answered) []string {
	if q.isApproval(f) {
		return []string{q.ApprovedBy, f.By}
	}
	if f.By == "" {
		return []string{byPerson}
	}
	return []string{f.By}
}
