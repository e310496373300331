package bounds

import (
	"errors"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/mailbox"
)

// Decisions are the decisions of a user about a call.
var Decisions = []spec.Decision{spec.Approve, spec.Deny, spec.Skip, spec.TextOnly}

// NegativeLimit returns the first negative limit, and its name in a request; n is 0 if there is none.
func NegativeLimit(l spec.RunLimits) (name string, n int64) {
	for _, limit := range [...]struct {
		name string
		n    int64
	}{{"tokens", l.Tokens}, {"nano_usd", l.Nano}, {"tool_calls", l.Calls}, {"depth", int64(l.Depth)}, {"children", int64(l.Children)},
		{"agents", int64(l.Agents)}, {"messages", int64(l.Messages)}, {"backlog", int64(l.Backlog)}, {"backlog_lease_ms", l.LeaseMS}} {
		if limit.n < 0 {
			return limit.name, limit.n
		}
	}
	return "", 0
}

// LogPageBytes is the most bytes of entries, or of a blob, in one reply: as base64 they grow by a third.
const LogPageBytes = 384 << 10

// CheckRunID rejects an id that no run can have.
func CheckRunID(run string) error {
	err := names.CheckToken(run)
	switch {
	case err == nil && mailbox.IsReserved(run):
		err = errReservedID
	case err == nil && strings.HasPrefix(run, "_"): // see ClusterRun
		err = errClusterID
	}
	if err != nil {
		return &client.Error{Code: client.CodeBad, Text: "run_id: " + err.Error(), Hint: "use a lower-case ULID"}
	}
	return nil
}

var (
	errReservedID = errors.New("this id is reserved for the logs of conversations and schedules")
	errClusterID  = errors.New("ids that begin with _ are reserved for the events of the cluster")
)
