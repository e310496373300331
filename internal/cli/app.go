// Package cli is the program troupe: its commands start runs and follow them, with a
// node in the process itself if there is none.
package cli

import (
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/troupe-run/troupe/internal/redact"
	"github.com/troupe-run/troupe/internal/term"
)

// Run runs the command that the arguments name and returns the exit code of the process.
// join limits the time in which a process that owns the state directory must answer.
func Run(args []string, join time.Duration) int {
	a := newApp(&console{in: os.Stdin, out: os.Stdout, err: os.Stderr, getenv: os.Getenv}, join)
	a.console.hidden = sync.OnceValue(a.sessions.secrets)
	root := a.root()
	root.SetArgs(args)
	err := root.Execute()
	if err == nil {
		return 0
	}
	f := explain(err)
	a.console.report(f)
	return f.code
}

// app holds what all commands share.
type app struct {
	console  *console
	sessions *opener
	origins  *settingOrigins
}

func newApp(c *console, join time.Duration) *app {
	return &app{console: c, sessions: &opener{console: c, patience: join}, origins: &settingOrigins{}}
}

// console is the terminal, and the global flags about output.
type console struct {
	in, out, err *os.File
	getenv       func(string) string

	output  string
	color   string
	asJSON  bool
	quiet   bool
	verbose bool

	// hidden knows the secrets of this process; nil: none.
	hidden func() *redact.Masker
	style  term.Style // of stdout
	errors term.Style // of stderr
}

func (a *console) logger() *slog.Logger {
	if !a.verbose {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// opener connects commands to a node, or starts one in this process. Its fields are the
// global flags about the server, the state directory and the models.
type opener struct {
	console  *console
	conn     connFlags
	storeIn  string        // --store-dir
	pricing  string        // --pricing-file
	model    string        // of the settings; a flag goes before it
	maxLive  int           // runs of a node in this process
	patience time.Duration // with an owner of the state directory that does not answer
	tapes    tapeFlags
}

// settingOrigins records of settings who set them, where that decides what they may do.
type settingOrigins struct {
	tokensByDirectory bool // the file of a directory has raised the limit on tokens
	// schemaBelow is the directory that names the file of --json-schema; "": the user does.
	schemaBelow string
}

type (
	runCommands struct {
		console  *console
		sessions *opener
		origins  *settingOrigins
	}
	runsCommands struct {
		console  *console
		sessions *opener
	}
	controlCommands struct {
		console  *console
		sessions *opener
	}
	agentCommands struct {
		console  *console
		sessions *opener
	}
	modelCommands struct {
		console  *console
		sessions *opener
	}
	toolCommands struct {
		console  *console
		sessions *opener
	}
	nodeCommands struct {
		console  *console
		sessions *opener
	}
	evalCommands   struct{ console *console }
	doctorCommands struct {
		console  *console
		sessions *opener
	}
	configCommands struct {
		console  *console
		sessions *opener
	}
	completionCommands struct {
		console  *console
		sessions *opener
	}
)
