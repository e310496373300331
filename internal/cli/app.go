// Package cli is the program troupe. It builds the root command from its subpackages, one for each
// job: run and follow, runs, control, agents, models, tools, nodes, evals, doctor,
// config and completion.
package cli

import (
	"os"
	"sync"
	"time"

	"github.com/troupe-run/troupe/internal/bus/localserver"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/request"
	"github.com/troupe-run/troupe/internal/cli/session"
)

// JoinTimeout is how long a command waits for the process that owns the state directory to answer,
// on an ordinary machine.
const JoinTimeout = session.JoinTimeout

// Run runs the command that the arguments name and returns the exit code of the process. A command that needs a server
// of its own starts it with start, and waits at most for join until the process that owns the state directory answers.
func Run(args []string, start localserver.StartFunc, join time.Duration) int {
	a := newApp(&console.Console{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv}, join)
	a.sessions.StartServer = start
	a.console.Secrets = sync.OnceValue(a.sessions.Secrets)
	first := ""
	if len(args) > 0 {
		first = args[0]
	}
	root := a.newRootFor(first)
	if isCompletion(args) { // it reads the flags of every command
		a.completion().Register(root)
	}
	root.SetArgs(args)
	err := root.Execute()
	if err == nil {
		return 0
	}
	f := exit.Explain(err)
	a.console.Report(f)
	return f.Code
}

// app holds what all commands share.
type app struct {
	console  *console.Console
	sessions *session.Opener
	origins  *request.Origins
}

func newApp(c *console.Console, join time.Duration) *app {
	return &app{console: c, sessions: &session.Opener{Console: c, JoinTimeout: join}, origins: &request.Origins{}}
}
