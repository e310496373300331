package control

import (
	"cmp"
	"context"
	"fmt"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control/runlog"
	"github.com/troupe-run/troupe/internal/control/runview"
	"github.com/troupe-run/troupe/internal/permission/person"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// answerFact is the entry of an answer. Request is set if it is the first of two approvals.
func answerFact(r client.AnswerRequest, q supervisor.OpenQuestion) agent.Answered {
	f := agent.Answered{Query: r.Query, Decision: r.Decision, Text: r.Text, Digest: cmp.Or(r.Digest, q.Digest), Always: r.Always, By: answeredBy(r.By)}
	if r.Decision == spec.Approve && q.Approvals > 1 && q.ApprovedBy == "" {
		f.Request = r.Request
	}
	return f
}

// approveFirst appends the first of two approvals. It marks no question as answered: of two that come at once, the
// agent takes the one that comes first in its log as the first, and the other one as the second.
func (c *commander) approveFirst(ctx context.Context, l runview.View, r client.AnswerRequest, q supervisor.OpenQuestion, f agent.Answered) (any, error) {
	return c.appendToViewed(ctx, l, answerID(r), q.Agent, "", f.Kind(), f)
}

// readApproval returns a question that two people must approve with the approval that the log of its agent has: the run
// learns of it once a node acts on the agent. open is false if the log has an answer that decides.
func readApproval(ctx context.Context, post mailbox.Store, run string, q supervisor.OpenQuestion) (now supervisor.OpenQuestion, open bool, err error) {
	if q.Approvals < 2 {
		return q, true, nil
	}
	s, err := runlog.ReplayAgent(ctx, post, mailbox.At(run, string(q.Agent)).In(q.Pool))
	if err != nil {
		return q, true, err
	}
	asked := s.Suspended.Question
	if s.Phase != agent.Waiting || asked.Query != q.Query {
		return q, false, nil
	}
	q.ApprovedBy, q.ApprovedRequest = asked.ApprovedBy, asked.ApprovedRequest
	return q, true, nil
}

// checkApproval refuses an approval that does not count for a question that two people must approve.
func checkApproval(r client.AnswerRequest, q supervisor.OpenQuestion) error {
	switch by := answeredBy(r.By); {
	case !person.IsNamed(by):
		return &client.Error{Code: client.CodeBad, Text: fmt.Sprintf("%q in %s needs the approval of %d different people, and %q names no person: this one has no name", r.Query, r.RunID, q.Approvals, by),
			Hint: "say who approves: the field by of the request"}
	case q.ApprovedBy != "" && person.IsSamePerson(q.ApprovedBy, by):
		return &client.Error{Code: client.CodeConflict, Text: fmt.Sprintf("%s has already approved %q in %s; a second person must", q.ApprovedBy, r.Query, r.RunID),
			Hint: "another person approves it, with `troupe answer` or on the page of the node"}
	}
	return nil
}

// checkSentAgain refuses an answer that has the id of the request that approved first, and says something else.
func checkSentAgain(r client.AnswerRequest, q supervisor.OpenQuestion) error {
	if r.Decision == spec.Approve && person.IsSamePerson(q.ApprovedBy, answeredBy(r.By)) {
		return nil
	}
	return &client.Error{Code: client.CodeConflict, Text: fmt.Sprintf("request %s has approved %q in %s for %s, and this one says something else", r.Request, r.Query, r.RunID, q.ApprovedBy),
		Hint: "use another request_id"}
}
