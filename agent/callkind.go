package agent

import (
	"slices"

	"github.com/troupe-run/troupe/agent/event"
)

// callKind is what a call is to the loop: which part of the system answers it. validateCall decides it once, by the
// name of the tool, before anything happens to the call.
type callKind string

// Kinds of calls. The zero callKind: the shell runs a tool.
const (
	toolCall        callKind = ""
	foreignCall     callKind = "foreign"     // the shell calls an agent of another program, as it runs a tool
	delegationCall  callKind = "delegation"  // a child agent answers
	handoffCall     callKind = "handoff"     // another agent takes the conversation over, and ends it
	messageCall     callKind = "message"     // the supervisor delivers a message to another agent
	backlogCall     callKind = "backlog"     // the supervisor answers from the backlog of the run
	questionCall    callKind = "question"    // a person answers
	declarationCall callKind = "declaration" // the loop answers, and the agent ends as failed
)

// isDelegation reports whether another agent of the run answers the call.
func (k callKind) isDelegation() bool { return k == delegationCall || k == handoffCall }

// sends reports whether the call is a message to the supervisor, which answers at once.
func (k callKind) sends() bool { return k == messageCall || k == backlogCall }

// isRemote reports whether the supervisor answers the call, whatever happens to this process.
func (k callKind) isRemote() bool { return k.isDelegation() || k.sends() } //mutant:message-sent-again-after-a-crash

// unansweredText is the result of a message to the supervisor whose answer is not awaited any more.
func (k callKind) unansweredText() string {
	if k == backlogCall {
		return "canceled before the backlog answered"
	}
	return "canceled before it was known whether the message was taken"
}

// event returns the event of a call's progress: delegations have their own.
func (k callKind) event(tool, delegation event.Kind) event.Kind {
	if k.isDelegation() {
		return delegation
	}
	return tool
}

// isBacklogTool reports whether the supervisor answers calls of a tool from the backlog.
func isBacklogTool(tool string) bool {
	return slices.Contains([]string{backlogList, backlogPost, backlogClaim, backlogDone, backlogReturn}, tool)
}

// changesBacklog reports whether a call of a tool changes the backlog, if it succeeds.
func changesBacklog(tool string) bool { return isBacklogTool(tool) && tool != backlogList }
