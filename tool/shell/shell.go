// Package shell is the tool of that name: a command line of a model, run in a
// sandbox (package sandbox), and the rules by which some run without approval.
package shell

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/troupe-run/troupe/internal/workdir"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
	"github.com/troupe-run/troupe/tool/sandbox"
)

// Name of the tool.
const Name = "shell"

// Config of the tool.
type Config struct {
	// Dir is where commands run, and what they may change. No part of the path may be a link. A link or another directory put there later is refused;
	// a directory that was removed and created again is accepted.
	Dir string
	// Read are further files and directories that they may read and run programs of.
	Read []string
	// WriteGit lets them write git directories too, hooks and settings included.
	WriteGit bool
	// Hide are directories below Dir that are not there for them.
	Hide []string
	// Timeout of a call. Default tool.TimeoutDefault.
	Timeout time.Duration
}

// ErrMoved: the name of the directory leads elsewhere than when the tool was made.
// Whoever could change that would have commands write where they may not.
var ErrMoved = errors.New("the directory is another one now: a link or another directory has taken its place")

type args struct {
	Command string `json:"command"`
}

// Tool makes shell. Its class is effect: nobody knows what a command does.
//
// An exit code that is not 0 is no failure of the tool: it is the last line of
// the result, as what a command printed is its first. So is what this system does
// not enforce of the sandbox.
func Tool(cfg Config) (tool.Tool, error) {
	work, err := workdir.Hold(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("shell: %w", err)
	}
	return tool.New(Name, "Run a command with /bin/sh in the directory. It is in a sandbox: it writes only there and in $TMPDIR, has no network, and ends with all that it started.",
		model.Effect, func(ctx context.Context, in args, c tool.Call) (string, error) {
			at, err := work.Open()
			if err != nil {
				return "", moved(err)
			}
			defer func() { _ = at.Close() }()
			out, err := sandbox.Run(ctx, sandbox.Spec{Command: in.Command, Dir: at.Name(), At: at, Read: cfg.Read, WriteGit: cfg.WriteGit, Hide: cfg.Hide, Output: tool.WholeBytesMax,
				Env: []string{"TROUPE_RUN=" + c.Run, "TROUPE_AGENT=" + c.Agent, "TROUPE_CALL=" + c.ID, "TROUPE_KEY=" + c.Key}})
			text := strings.ToValidUTF8(string(out.Stdout), "\uFFFD")
			if err != nil {
				return text, moved(err)
			}
			return text + about(text, out), nil
		}, tool.Timeout(cfg.Timeout))
}

// moved is ErrMoved in place of what says the same with the names of this machine.
func moved(err error) error {
	if errors.Is(err, workdir.ErrReplaced) {
		return ErrMoved
	}
	return err
}

// about are the lines that are about a result.
func about(text string, out sandbox.Output) string {
	var b strings.Builder
	line := func(format string, args ...any) {
		if text != "" && !strings.HasSuffix(text, "\n") && b.Len() == 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "["+format+"]\n", args...)
	}
	switch {
	case out.Signal != 0:
		line("ended by signal %d", out.Signal)
	case out.Exit != 0:
		line("exit code %d", out.Exit)
	case text == "":
		line("exit code 0, and it printed nothing")
	}
	if missing := out.Report.Missing(); len(missing) > 0 {
		line("not enforced on this system: %s", missing)
	}
	return b.String()
}
