package agent

import (
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
)

// Call is one tool call of the last reply: what the model asked for, how far it is, and what it came to. end writes its
// Result; a retry keeps the failure there meanwhile, and a question about a call of unknown outcome adds to the Result.
type Call struct {
	model.ToolCall
	callProgress
	Kind        callKind
	Child       spec.ID         // a delegation or a handoff: the agent that answers
	Born        int64           // … and the clock when it was requested
	Gate        callGate        // the hooks and the person who decide about it
	Disposition callDisposition // what it means beside its result
	Result      model.ToolResult
	Tokens      int64           // the shell's count of Result; 0: not counted
	Synthetic   event.Synthetic // Ended: the loop wrote the result, since the call was cut off
	Tainted     *spec.Taint     // what its answer says about the text from outside in it
	Handed      *handedAnswer   // a handoff: how the other agent has ended
}

// callDisposition is what a call means beside its result. The zero callDisposition: its result is all.
type callDisposition string

// Dispositions of a call. They exclude each other.
const (
	refusedByRule   callDisposition = "refused by rule"   // the tool of an MCP server is not there, or permissions, a rule or a hook denied it: see deny
	refusedByPerson callDisposition = "refused by person" // that directs the agent, so the call is no obstacle
	failureDeclared callDisposition = "declared"          // a declared failure that counts
	handedOff       callDisposition = "handed off"        // the other agent has the conversation
)

// callGate is what hooks and people have decided about a call, before it runs and after it has failed.
type callGate struct {
	Point        spec.HookPoint // Gated: pre_tool, tool_error or tool_result
	Returned     Returned       // Gated after it has run: what it returned, for observers
	Passed       bool           // the hooks before it have approved it
	Node         string         // … on the node where they were asked last; see reapproval.go
	AgreedReason string         // the reason that a person read and agreed to
	Again        int            // times its hooks were asked anew: on another node, or about other arguments
	Rewriter     int            // the hook whose arguments the call has, from 1; 0: none
	Rewrites     int            // times hooks have changed the arguments
	Permit       permit         // what the permissions say about the call
	Shows        string         // Gated: what a person reads of the call; "": its arguments
	Person       string         // Gated: why hooks want a person to decide
}

// awaitPerson makes the call wait for a person, who decides about it with the arguments that it has now.
func (g callGate) awaitPerson(v hookVerdict) callGate {
	g.Person, g.Shows = v.reasonText(), v.shows
	return g
}

// isPassedOn reports whether the hooks before a call have approved it on the node where it is to begin.
func (g callGate) isPassedOn(node string) bool {
	return g.Passed && g.Node == node //mutant:word-of-another-node-counts
}
