// Package main is troupe: it starts runs and follows them, with a node in its
// own process if there is none.
package main

import (
	"os"
	"sync"
	"time"

	"github.com/troupe-run/troupe/term"
	"github.com/troupe-run/troupe/tool/mask"
)

func main() { os.Exit(run(os.Args[1:], joinTimeout)) }

// run is main with an exit code. join is how long a state directory may be owned by
// somebody who does not answer.
func run(args []string, join time.Duration) int {
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
	hidden func() *mask.Masker
	model  string     // of the settings; a flag goes before it
	style  term.Style // of stdout
	errors term.Style // of stderr
}
