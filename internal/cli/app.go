// Package cli is the program troupe: its commands start runs and follow them, with a
// node in the process itself if there is none.
package cli

import (
	"os"
	"sync"
	"time"

	"github.com/troupe-run/troupe/internal/redact"
	"github.com/troupe-run/troupe/internal/term"
)

// Run runs the command that the arguments name and returns the exit code of the process.
// join limits the time in which a process that owns the state directory must answer.
func Run(args []string, join time.Duration) int {
	a := &app{in: os.Stdin, out: os.Stdout, err: os.Stderr, getenv: os.Getenv, patience: join}
	a.hidden = sync.OnceValue(a.secrets)
	root := a.root()
	root.SetArgs(args)
	err := root.Execute()
	if err == nil {
		return 0
	}
	f := explain(err)
	a.report(f)
	return f.code
}

// app is what all commands share: the terminal, and the global flags.
type app struct {
	in, out, err *os.File
	getenv       func(string) string
	maxLive      int           // runs of a node in this process
	patience     time.Duration // with an owner of the state directory that does not answer

	conn   connFlags
	raised bool // the limit on tokens is the word of a directory
	// schemaBelow is the directory that names the file of --json-schema; "": the user does.
	schemaBelow string
	storeIn     string // --store-dir
	pricing     string // --pricing-file
	output      string
	color       string
	asJSON      bool
	quiet       bool
	verbose     bool

	tapes tapeFlags
	// hidden knows the secrets of this process; nil: none.
	hidden func() *redact.Masker
	model  string     // of the settings; a flag goes before it
	style  term.Style // of stdout
	errors term.Style // of stderr
}
