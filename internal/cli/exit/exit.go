// Package exit gives every error of a command an exit code, and a remedy where one is known.
package exit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/localserver"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/cassette"
	"github.com/troupe-run/troupe/internal/telemetry"
)

// Exit codes.
const (
	OK          = 0
	Failed      = 1
	Usage       = 2
	Budget      = 3
	Limit       = 4
	NeedsHuman  = 5
	NoNode      = 6
	Provider    = 7
	Refused     = 8
	Interrupted = 130
	Terminated  = 143
)

// ForReason returns the exit code for a result; terminated means that SIGTERM ended it.
func ForReason(r spec.Reason, terminated bool) int {
	switch event.Subtype(r) {
	case "success":
		return OK
	case "error_max_tokens", "error_max_budget_usd":
		return Budget
	case "error_max_turns", "error_max_tool_calls", "error_timeout":
		return Limit
	case "error_needs_human":
		return NeedsHuman
	case "error_provider":
		return Provider
	case "error_refused":
		return Refused
	case "error_cancelled":
		if terminated {
			return Terminated
		}
		return Interrupted
	}
	return Failed
}

// Failure makes the process exit with a code. Without err, everything was printed already.
type Failure struct {
	Code int
	Err  error
	Hint string
}

func (f *Failure) Error() string {
	if f.Err == nil {
		return fmt.Sprintf("exit %d", f.Code)
	}
	return f.Err.Error()
}

func (f *Failure) Unwrap() error { return f.Err }

// UsageError is a failure that the user can fix: hint says how.
func UsageError(hint, format string, args ...any) error {
	return &Failure{Code: Usage, Err: fmt.Errorf(format, args...), Hint: hint}
}

// WithCode is a code without a message: the result was printed.
func WithCode(code int) error {
	if code == OK {
		return nil
	}
	return &Failure{Code: code}
}

// Explain gives every error a code, and a remedy where one is known.
func Explain(err error) *Failure {
	var known *Failure
	if errors.As(err, &known) {
		return known
	}
	var refused *client.Error
	switch {
	case errors.As(err, &refused):
		return &Failure{Code: codeOfRefusal(refused.Code), Err: errors.New(refused.Text), Hint: refused.Hint}
	case errors.Is(err, statedir.ErrUntrusted):
		return &Failure{NoNode, err, "choose another --store-dir; chmod 700 this one only if you trust every user who could write to it"}
	case errors.Is(err, statedir.ErrStateDir):
		return &Failure{NoNode, err, "close it to others with chmod 700, or use another --store-dir"}
	case errors.Is(err, statedir.ErrLogStore):
		return &Failure{Usage, err, "a directory remembers its log store, so --log-store is for a new one; see docs/profiles.md"}
	case errors.Is(err, telemetry.ErrSettings):
		return &Failure{Usage, err, "docs/telemetry.md lists the settings and variables"}
	case errors.Is(err, statedir.ErrNodeFile):
		return &Failure{NoNode, err, "if no node of yours wrote it, remove it; or use another --store-dir"}
	case errors.Is(err, statedir.ErrNoServer):
		return &Failure{NoNode, err, "start it, name another with -s, or leave -s out to run a server in process"}
	case errors.Is(err, bus.ErrCredentials):
		return &Failure{NoNode, err, "give --creds, --nkey, --user or --token, or a --context of the nats CLI"}
	case errors.Is(err, statedir.ErrNewerForm):
		return &Failure{NoNode, err, "install the newer troupe; this one has touched nothing"}
	case errors.Is(err, bus.ErrNoLeader):
		return &Failure{NoNode, err, "wait, or start the other servers: a leader needs more than half of them"}
	case errors.Is(err, bus.ErrNoJetStream):
		return &Failure{NoNode, err, "enable JetStream on the server (nats-server -js) or for this account"}
	case errors.Is(err, localserver.ErrStart) && (errors.Is(err, syscall.ENOTDIR) || errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission)):
		return &Failure{Usage, err, "--store-dir (or XDG_STATE_HOME) names the state directory: name one that can be created and written"}
	case errors.Is(err, localserver.ErrStart):
		return &Failure{NoNode, err, "another --store-dir or --nats-port may help; -v shows the server's log"}
	case errors.Is(err, statedir.ErrOwned):
		return &Failure{NoNode, err, "wait for the other process, or use another --store-dir"}
	case errors.Is(err, bus.ErrContext):
		return &Failure{Usage, err, "`nats context ls` lists the contexts; --context, NATS_CONTEXT"}
	case errors.Is(err, client.ErrAmbiguous):
		return &Failure{Usage, errors.New(PlainText(err)), "type more of it; `troupe list` shows the runs"}
	case errors.Is(err, cassette.ErrFull):
		return &Failure{Usage, err, "name another directory for --record, or remove that one"}
	case errors.Is(err, cassette.ErrCassette):
		return &Failure{Usage, err, "--record DIR makes a recording, --replay DIR plays one; see docs/cassettes.md"}
	case client.Lost(err):
		return &Failure{NoNode, errors.New("no troupe node answers"), "start one with troupe-node, or leave -s out to run one in process"}
	case errors.Is(err, context.Canceled):
		return &Failure{Code: Interrupted, Err: errors.New("interrupted")}
	case errors.Is(err, os.ErrNotExist), errors.Is(err, os.ErrPermission):
		return &Failure{Code: Usage, Err: err}
	}
	return &Failure{Code: Failed, Err: err}
}

func codeOfRefusal(code string) int {
	switch code {
	case client.CodeBad, client.CodeForbidden, client.CodeNotFound, client.CodeConflict, client.CodeGone:
		return Usage
	case client.CodeUnavailable, client.CodeLogs:
		return NoNode
	}
	return Failed
}

// PlainText is an error without the names of packages in front.
func PlainText(err error) string {
	text := err.Error()
	for _, prefix := range []string{"bus: ", "statedir: ", "embedded: ", "names: ", "client: ", "node: ", "control: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return text
}
