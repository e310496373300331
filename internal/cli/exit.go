package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/node"
	"github.com/troupe-run/troupe/internal/redact"
	"github.com/troupe-run/troupe/internal/term"
	"github.com/troupe-run/troupe/model/cassette"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitBudget      = 3
	exitLimit       = 4
	exitHuman       = 5
	exitNoNode      = 6
	exitProvider    = 7
	exitRefused     = 8
	exitInterrupted = 130
	exitTerminated  = 143
)

// exitCode returns the exit code for a result; terminated means that SIGTERM ended it.
func exitCode(r spec.Reason, terminated bool) int {
	switch event.Subtype(r) {
	case "success":
		return exitOK
	case "error_max_tokens", "error_max_budget_usd":
		return exitBudget
	case "error_max_turns", "error_max_tool_calls", "error_timeout":
		return exitLimit
	case "error_needs_human":
		return exitHuman
	case "error_provider":
		return exitProvider
	case "error_refused":
		return exitRefused
	case "error_cancelled":
		if terminated {
			return exitTerminated
		}
		return exitInterrupted
	}
	return exitFailed
}

// failure makes the process exit with a code. Without err, everything was printed already.
type failure struct {
	code int
	err  error
	hint string
}

func (f *failure) Error() string {
	if f.err == nil {
		return fmt.Sprintf("exit %d", f.code)
	}
	return f.err.Error()
}

func (f *failure) Unwrap() error { return f.err }

func usage(hint, format string, args ...any) error {
	return &failure{code: exitUsage, err: fmt.Errorf(format, args...), hint: hint}
}

// ended is a code without a message: the result was printed.
func ended(code int) error {
	if code == exitOK {
		return nil
	}
	return &failure{code: code}
}

// explain gives every error a code, and a remedy where one is known.
func explain(err error) *failure {
	var known *failure
	if errors.As(err, &known) {
		return known
	}
	var refused *client.Error
	switch {
	case errors.As(err, &refused):
		return &failure{code: refusalCode(refused.Code), err: errors.New(refused.Text), hint: refused.Hint}
	case errors.Is(err, statedir.ErrUntrusted):
		return &failure{exitNoNode, err, "choose another --store-dir; close this one with chmod 700 only if you trust all who could write in it"}
	case errors.Is(err, statedir.ErrStateDir):
		return &failure{exitNoNode, err, "close it to others with chmod 700, or use another --store-dir"}
	case errors.Is(err, statedir.ErrNodeFile):
		return &failure{exitNoNode, err, "if no node of yours wrote it, remove it; or use another --store-dir"}
	case errors.Is(err, statedir.ErrNoServer):
		return &failure{exitNoNode, err, "start it, name another with -s, or leave -s out to run a server in process"}
	case errors.Is(err, bus.ErrCredentials):
		return &failure{exitNoNode, err, "give --creds, --nkey, --user or --token, or a --context of the nats CLI"}
	case errors.Is(err, statedir.ErrNewer):
		return &failure{exitNoNode, err, "install the newer troupe; this one has touched nothing"}
	case errors.Is(err, bus.ErrNoLeader):
		return &failure{exitNoNode, err, "wait, or start the other servers: a leader needs more than half of them"}
	case errors.Is(err, bus.ErrNoJetStream):
		return &failure{exitNoNode, err, "enable JetStream on the server (nats-server -js) or for this account"}
	case errors.Is(err, embedded.ErrStart):
		return &failure{exitNoNode, err, "another --store-dir or --nats-port may help; -v shows what the server says"}
	case errors.Is(err, statedir.ErrOwned):
		return &failure{exitNoNode, err, "wait for the other process, or use another --store-dir"}
	case errors.Is(err, cassette.ErrFull):
		return &failure{exitUsage, err, "name another directory for --record, or remove that one"}
	case errors.Is(err, cassette.ErrCassette):
		return &failure{exitUsage, err, "--record DIR makes a recording, --replay DIR plays one; see docs/cassettes.md"}
	case client.Lost(err):
		return &failure{exitNoNode, errors.New("no troupe node answers"), "start one with troupe-node, or leave -s out to run one in process"}
	case errors.Is(err, context.Canceled):
		return &failure{code: exitInterrupted, err: errors.New("interrupted")}
	case errors.Is(err, os.ErrNotExist), errors.Is(err, os.ErrPermission):
		return &failure{code: exitUsage, err: err}
	}
	return &failure{code: exitFailed, err: err}
}

func refusalCode(code string) int {
	switch code {
	case client.CodeBad, client.CodeForbidden, client.CodeNotFound, client.CodeConflict, client.CodeGone:
		return exitUsage
	case client.CodeUnavailable, client.CodeJournal:
		return exitNoNode
	}
	return exitFailed
}

// report writes a failure to stderr: two lines, or one JSON document if JSON
// was asked for.
func (a *console) report(f *failure) {
	if f.err == nil {
		return
	}
	text := plainError(f.err)
	if a.asJSON || strings.Contains(a.output, "json") {
		doc := struct {
			Type  string `json:"type"`
			Error string `json:"error"`
			Hint  string `json:"hint,omitempty"`
			Exit  int    `json:"exit_code"`
		}{"error", text, f.hint, f.code}
		if raw, err := json.Marshal(doc); err == nil {
			a.say(string(term.CleanJSON(raw)))
			return
		}
	}
	a.say(a.errors.Red("error:") + " " + term.Line(text))
	if f.hint != "" {
		a.say(a.errors.Yellow("hint:") + " " + term.Line(f.hint))
	}
}

// plainError is an error without the names of packages in front.
func plainError(err error) string {
	text := err.Error()
	for _, prefix := range []string{"bus: ", "client: ", "host: ", "control: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return text
}

// say writes a line to stderr. It ignores a failure, because there is nowhere left to report it.
func (a *console) say(line string) { _, _ = io.WriteString(a.err, a.hide(line)+"\n") }

// hide redacts the secrets of this process in a line: an error may quote
// an address, or text that was typed in the wrong place.
func (a *console) hide(line string) string {
	if a.hidden == nil {
		return line
	}
	return a.hidden().Values(line)
}

// secrets are those that the environment and the flags hold.
func (a *opener) secrets() *redact.Masker {
	return node.Secrets(node.Config{Env: a.console.getenv, Environ: os.Environ(), Bus: a.conn.Options})
}
