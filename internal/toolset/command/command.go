// Package command makes tools of shell commands, as agent files define them.
package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/troupe-run/troupe/internal/filechange"
	"github.com/troupe-run/troupe/internal/process"
	"github.com/troupe-run/troupe/internal/workdir"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
)

// Config describes a tool that is a shell command.
type Config struct {
	Name, Description string
	// Command is given to /bin/sh -c. Arguments reach it only as JSON on stdin:
	// nothing that a model wrote is ever part of a command line.
	Command string
	// Class is the effect class. Default model.Effect: what nothing is known
	// about is not run twice.
	Class model.Class
	// Poll marks a tool that is made to be called repeatedly (model.ToolSpec.Poll).
	Poll bool
	// Schema is the JSON Schema of the arguments. Default: an object of anything.
	Schema string
	// Dir is where it runs. Default: the directory of the process. A link or another directory that comes in its place
	// after the tool was made is not followed, unless the one that was there is removed.
	Dir string
	// Exact means that not even making the tool follows a link on the way to Dir.
	Exact bool
	// Env are further "NAME=value" entries. Of the process's own environment it
	// gets PATH, HOME, LANG and TMPDIR only.
	Env []string
	// Timeout of a call. Default tool.TimeoutDefault.
	Timeout time.Duration
	// Output is the most bytes of a result. Default tool.OutputBytesMax.
	Output int
}

// stderrShown is how much of the end of stderr a failed command's result has.
const stderrShown = 2000

var passedOn = []string{"PATH", "HOME", "LANG", "TMPDIR"}

// New makes a tool of a shell command. The command reads its arguments as JSON from
// stdin, its stdout is the result, and a non-zero exit is an error result with
// the exit code and the end of stderr. The command runs in a process group of its own,
// and every process of that group is killed when the call ends, however it ends.
//
// Exit code 75 (EX_TEMPFAIL of sysexits.h) marks the failure as temporary: a
// command of class read or idempotent is then retried after a delay.
//
// The environment of the command describes the call: TROUPE_RUN, TROUPE_AGENT, TROUPE_TURN,
// TROUPE_CALL, TROUPE_KEY (the same for every attempt of a call), TROUPE_ATTEMPT, TROUPE_DEADLINE
// (RFC 3339) and, if the call is part of a trace, TRACEPARENT. TROUPE_METRICS is the path of a file
// to which the command may append figures of the call, a line "NAME VALUE" for each (see tool.Call.Metric).
func New(cfg Config) (tool.Tool, error) {
	if strings.TrimSpace(cfg.Command) == "" {
		return nil, fmt.Errorf("%w: %s has no command", tool.ErrSpec, cfg.Name)
	}
	if cfg.Class == "" {
		cfg.Class = model.Effect
	}
	if cfg.Schema == "" {
		cfg.Schema = `{"type":"object"}`
	}
	t := &shellCommand{cfg: cfg}
	if err := t.holdDirectory(); err != nil {
		return nil, err
	}
	if _, err := tool.NewSet(t); err != nil {
		return nil, err
	}
	return t, nil
}

type shellCommand struct {
	cfg Config
	dir *workdir.HeldDirectory // nil: that of the process
}

func (t *shellCommand) holdDirectory() (err error) {
	dir := t.cfg.Dir
	if dir == "" {
		return nil
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return fmt.Errorf("tool %s: directory: %w", t.cfg.Name, err)
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil && !t.cfg.Exact {
		dir = real
	}
	if t.dir, err = workdir.Hold(dir); err != nil {
		return fmt.Errorf("tool %s: directory: %w", t.cfg.Name, err)
	}
	return nil
}

func (t *shellCommand) Spec() model.ToolSpec {
	return model.ToolSpec{Name: t.cfg.Name, Description: t.cfg.Description, Schema: t.cfg.Schema, Class: t.cfg.Class, Poll: t.cfg.Poll}
}

func (t *shellCommand) Limits() tool.Limits {
	return tool.Limits{Timeout: t.cfg.Timeout, Output: t.cfg.Output}
}

func (t *shellCommand) Call(ctx context.Context, c tool.Call) (tool.Result, error) {
	dir := ""
	if t.dir != nil {
		at, err := t.dir.Open()
		if err != nil {
			return tool.Result{}, fmt.Errorf("%s could not run: %w", t.cfg.Name, err)
		}
		defer func() { _ = at.Close() }()
		dir = workdir.DescriptorPath(at)
		if t.cfg.Class != model.Read {
			compare := filechange.Watch(ctx, at, nil)
			defer func() { c.ReportChanges(compare()) }()
		}
	}
	figures := openMetricsFile()
	defer figures.reportTo(c)
	out, err := process.Run(ctx, process.Spec{
		Argv:      []string{"/bin/sh", "-c", t.cfg.Command},
		Dir:       dir,
		Env:       append(t.environment(c), figures.environment()...),
		Stdin:     c.Args,
		StdoutMax: tool.WholeBytesMax,
	})
	r := tool.Result{Text: string(out.Stdout)}
	if out.Cut {
		r.TextBytes = out.StdoutBytes
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return r, err
	case err != nil:
		return r, fmt.Errorf("%s could not run: %w", t.cfg.Name, err)
	case out.Exit == 0:
		return r, nil
	}
	how := "exit code " + strconv.Itoa(out.Exit)
	if out.Exit < 0 {
		how = "ended by a signal"
	}
	failure := fmt.Sprintf("%s failed: %s", t.cfg.Name, how)
	if end := lastBytes(strings.TrimSpace(string(out.Stderr)), stderrShown); end != "" {
		failure += "; stderr: " + end
	}
	if out.Exit == exitTempFail {
		return r, tool.Transient(errors.New(failure))
	}
	return r, errors.New(failure)
}

// exitTempFail is EX_TEMPFAIL: "temporary failure, user is invited to retry".
const exitTempFail = 75

func (t *shellCommand) environment(c tool.Call) []string {
	var env []string
	for _, name := range passedOn {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	env = append(env, t.cfg.Env...)
	env = append(env, "TROUPE_RUN="+c.Run, "TROUPE_AGENT="+c.Agent, "TROUPE_TURN="+strconv.Itoa(c.Turn), "TROUPE_CALL="+c.ID,
		"TROUPE_KEY="+c.Key, "TROUPE_ATTEMPT="+strconv.Itoa(c.Attempt), "TROUPE_DEADLINE="+c.Deadline.UTC().Format(time.RFC3339Nano))
	if c.Trace != "" {
		env = append(env, "TRACEPARENT="+c.Trace)
	}
	return env
}

func lastBytes(s string, n int) string {
	if len(s) > n {
		s = "…" + s[len(s)-n:]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
