package client

import (
	"errors"
	"fmt"
	"time"
)

// Codes of errors, in Nats-Service-Error-Code.
const (
	CodeBad         = "400" // the request is invalid: Text says what, Hint what to change
	CodeForbidden   = "403" // this node does not allow it, such as a path outside its roots
	CodeNotFound    = "404" // there is no such run, agent, question or node
	CodeConflict    = "409" // the current state does not allow it, such as a second answer to a question
	CodeGone        = "410" // the run was deleted
	CodeLimit       = "429" // a limit is reached, such as that of queued runs
	CodeInternal    = "500" // a bug: the node's log has the details
	CodeUnavailable = "503" // the node cannot do it now; repeat the request later
	CodeLogs        = "507" // the node cannot write its logs now: a full disk, a server whose store is off
)

// ErrUnavailable says that no node answered.
var ErrUnavailable = errors.New("client: no node answers")

// Error is a refusal by a node.
type Error struct {
	Code string
	Text string
	Hint string
	// Reason is ReasonUnknownAgent, or empty.
	Reason string
	// Retry is the time after which to send the same request again, if the node is only busy;
	// otherwise 0.
	Retry time.Duration
}

func (e *Error) Error() string { return fmt.Sprintf("node: %s (%s)", e.Text, e.Code) }

// ReasonHeader carries the reason of a refusal that programs tell apart from others of the same code, such as
// ReasonUnknownAgent.
const ReasonHeader = "Troupe-Reason"

// ReasonUnknownAgent says that a request to start a run names an agent that does not exist or cannot be used.
const ReasonUnknownAgent = "unknown_agent"
