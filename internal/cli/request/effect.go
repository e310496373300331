package request

import (
	"fmt"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
)

const waitsForAnother = "approved by one person: the call waits for another one"

// DescribeAnswer says in one line what an answer to a question has decided.
func DescribeAnswer(q client.Question, r client.AnswerRequest) string {
	isUnsafe := spec.Reason(q.Reason) == spec.ResumeUnsafe
	switch {
	case q.Digest != "":
		return describeCallAnswer(q, r)
	case isUnsafe && q.Call != "":
		return describeOutcomeAnswer(q, r)
	case q.Call != "" && r.Decision == spec.Skip:
		return "skipped: the agent goes on without an answer"
	case q.Call != "":
		return "answered: the agent reads it"
	case r.Decision == spec.Deny:
		return "denied: the agent ends"
	case isUnsafe:
		return "approved: the agent goes on as the run began"
	}
	return "answered: the agent goes on"
}

// describeCallAnswer is DescribeAnswer for the approval of a call.
func describeCallAnswer(q client.Question, r client.AnswerRequest) string {
	switch r.Decision {
	case spec.Approve:
		switch {
		case q.Approvals > 1 && q.ApprovedBy == "":
			return waitsForAnother
		case r.Always == "project" && q.Rule != "":
			return "approved: the call runs, and calls that " + q.Rule + " matches run without a question in the rest of this run and in your later runs in its directory"
		case r.Always != "" && q.Approvals < 2:
			return "approved: the call runs, and calls that " + q.Rule + " matches run without a question until the run ends"
		case q.Approvals > 1:
			return fmt.Sprintf("approved by %d people: the call runs once", q.Approvals)
		}
		return "approved: the call runs once"
	case spec.Deny:
		if r.Text != "" {
			return "denied: the call does not run, and the agent reads the reason"
		}
		return "denied: the call does not run"
	case spec.Skip:
		return "skipped: the call does not run, and the agent goes on"
	}
	return "the call does not run; your text is its result"
}

// describeOutcomeAnswer is DescribeAnswer for a call of unknown outcome.
func describeOutcomeAnswer(q client.Question, r client.AnswerRequest) string {
	switch r.Decision {
	case spec.Approve:
		if q.Approvals > 1 && q.ApprovedBy == "" {
			return waitsForAnother
		}
		return "approved: the call runs again"
	case spec.TextOnly:
		return "the call does not run again; your text is its outcome"
	}
	return "the call does not run again; the agent reads that its outcome is unknown"
}
