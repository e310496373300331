// Package shell is the tool of that name: a command line of a model, run in a
// sandbox (package sandbox), and the rules by which some run without approval.
package shell

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/troupe-run/troupe/internal/filechange"
	"github.com/troupe-run/troupe/internal/sandbox"
	"github.com/troupe-run/troupe/internal/workdir"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
)

// Name of the tool.
const Name = "shell"

// Config of the tool.
type Config struct {
	// Dir is where commands run, and what they may change. No part of the path may be a link. A link or another
	// directory put there later is refused; a directory that was removed and created again is accepted.
	Dir string
	// Read are further files and directories that they may read and run programs of.
	Read []string
	// WriteGit lets them write git directories too, hooks and settings included.
	WriteGit bool
	// Hide are directories below Dir that are not there for them.
	Hide []string
	// Env are further variables, NAME=value, of its commands.
	Env []string
	// Timeout of a call. Default tool.TimeoutDefault.
	Timeout time.Duration
}

// ErrMoved means that the path of the directory leads elsewhere than when the tool was made.
// An attacker who could change that would make commands write where they may not.
var ErrMoved = errors.New("the directory is another one now: a link or another directory has taken its place")

type shellArgs struct {
	Command string `json:"command"`
}

// Tool makes shell. Its class is effect, because a command may do anything.
//
// A non-zero exit code is not a failure of the tool: the result states it in its last
// line, and starts with the output of the command. The result also lists the promises of
// the sandbox that this system does not enforce.
func Tool(cfg Config) (tool.Tool, error) {
	work, err := workdir.Hold(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("shell: %w", err)
	}
	var skip []string
	for _, hidden := range cfg.Hide {
		if rel, err := filepath.Rel(cfg.Dir, hidden); err == nil {
			skip = append(skip, filepath.ToSlash(rel))
		}
	}
	return tool.New(Name, "Run a command with /bin/sh in the directory. It is in a sandbox: it writes only there and in $TMPDIR, has no network, and ends with all that it started.",
		model.Effect, func(ctx context.Context, in shellArgs, c tool.Call) (string, error) {
			at, err := work.Open()
			if err != nil {
				return "", replaceMoved(err)
			}
			defer func() { _ = at.Close() }()
			compare := filechange.Watch(ctx, at, skip)
			out, err := sandbox.Run(ctx, sandbox.Spec{Command: in.Command, Dir: at.Name(), At: at, Read: cfg.Read, WriteGit: cfg.WriteGit, Hide: cfg.Hide, Output: tool.WholeBytesMax,
				Env: append(cfg.Env[:len(cfg.Env):len(cfg.Env)], "TROUPE_RUN="+c.Run, "TROUPE_AGENT="+c.Agent, "TROUPE_CALL="+c.ID, "TROUPE_KEY="+c.Key)})
			c.ReportChanges(compare())
			text := strings.ToValidUTF8(string(out.Stdout), "\uFFFD")
			if err != nil {
				return text, replaceMoved(err)
			}
			return text + resultNotes(text, out), nil
		}, tool.Timeout(cfg.Timeout))
}

// replaceMoved replaces an error of the same meaning, which contains paths of this machine, by ErrMoved.
func replaceMoved(err error) error {
	if errors.Is(err, workdir.ErrReplaced) {
		return ErrMoved
	}
	return err
}

// resultNotes are the lines that are about a result.
func resultNotes(text string, out sandbox.Output) string {
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
