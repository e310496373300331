// Package sandbox runs one shell command so that it can do little harm: it
// writes in one directory and a temporary one, reads what programs need and
// nothing of a person's, reaches no network, sees no other process, gains no
// rights, and leaves nothing behind, also not what left its group or session.
//
// What of this a system enforces differs, so every run comes with a Report. On
// Linux it takes no rights and no other program: namespaces, Landlock, limits of
// the kernel and a helper, which is this very binary started under another name
// (see init). Elsewhere only the process group, the environment and the time are
// kept, and the Report says so. docs/sandbox.md is the whole story.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/workdir"
	"github.com/troupe-run/troupe/tool/proc"
)

// Limits of one command unless its Spec says otherwise.
const (
	MemoryBytesMax  = 2 << 30 // of each process: its data, stack and anonymous memory
	FileBytesMax    = 1 << 30 // of each file that it writes
	ProcessesMax    = 1024    // at once
	DescriptorsMax  = 4096    // of each process
	CommandBytesMax = 64 << 10
)

// ErrCommand is a command that cannot be run.
var ErrCommand = errors.New("sandbox: bad command")

// ErrReplaced is a directory or file that was another one when the command would have begun.
var ErrReplaced = workdir.ErrReplaced

// Exact is a file or directory by a name without links, and what it was when it was looked at.
type Exact struct {
	Path string
	Info os.FileInfo
}

// Spec says what to run and what it may touch.
type Spec struct {
	// Command is given to /bin/sh -c.
	Command string
	// Argv is a program and its arguments, in place of a Command. Its stderr is dropped.
	Argv []string
	// Dir is where it runs; it may write there and below, unless ReadOnly says no. No part of the path may be a link:
	// see filepath.EvalSymlinks. It is opened once; where another directory or a link takes its place until the
	// command begins, the command does not begin (ErrReplaced), and what comes later changes nothing.
	Dir string
	// At is Dir as somebody has opened it before: the command runs in it, or not at all. Default: Run opens Dir.
	At       *os.File
	ReadOnly bool
	// WriteGit opens the git directories below Dir, which are read-only otherwise.
	WriteGit bool
	// Hide are directories below Dir, without links, that are not there for it. They are made where they are missing, so that no
	// command makes them.
	Hide []string
	// Read are further files and directories that it may read and run programs of.
	Read []string
	// Exact are such files and directories too, which somebody has looked at: where one is another by then, the
	// command does not begin (ErrReplaced). Whoever names them holds them open, or their numbers may be given anew.
	Exact []Exact
	// Env is added to PATH, LANG, LC_ALL, TZ, TERM, HOME and TMPDIR; nothing else
	// of our environment is passed on. HOME and TMPDIR are a directory that is
	// removed after the command.
	Env []string
	// Memory and Processes bound it; 0: MemoryBytesMax, ProcessesMax.
	Memory    int64
	Processes int
	// Output is the most that is kept of what it prints. Default: as package proc.
	Output int
	// HeadOnly keeps the beginning of what it prints, instead of both ends.
	HeadOnly bool
	// Less makes a system do without, to see what is left then: for tests.
	Less Less

	path string      // of the program
	info os.FileInfo // of Dir
}

// Less says what is not used although the system has it.
type Less struct{ Namespaces, Landlock bool }

// What a Report speaks of.
const (
	Files      = "files"      // only the directory is written, and a person's files are not read
	Git        = "git"        // no git directory below the directory is written
	Network    = "network"    // none is reached
	Leftovers  = "leftovers"  // nothing runs on after the command
	Isolation  = "isolation"  // no other process is seen or signaled
	Privileges = "privileges" // none are gained
	Memory     = "memory"
	Processes  = "processes"
	Trust      = "trust" // nothing of Spec.Hide is seen or written; only where there is any
)

// Finding is whether one promise is enforced, and by what or why not.
type Finding struct {
	What string `json:"what"`
	Held bool   `json:"held"`
	How  string `json:"how"`
}

// Report is what was enforced on this system.
type Report []Finding

// Missing are the promises that are not enforced.
func (r Report) Missing() Report {
	var list Report
	for _, f := range r {
		if !f.Held {
			list = append(list, f)
		}
	}
	return list
}

// String is one line.
func (r Report) String() string {
	parts := make([]string, len(r))
	for i, f := range r {
		parts[i] = f.What + " (" + f.How + ")"
	}
	return strings.Join(parts, ", ")
}

// Output is what a command left. Exit is -1 where a signal ended it.
type Output struct {
	proc.Output
	Signal int
	Report Report
}

// beforeStart is called before the helper starts: for tests.
var beforeStart = func() {}

// Run runs a command to its end, or kills it when ctx ends and returns the cause
// of ctx. Stdout and stderr come as one. When Run returns, nothing of the command
// runs any more as far as the Report says so.
func Run(ctx context.Context, spec Spec) (Output, error) {
	program := len(spec.Argv) > 0
	if !program && strings.TrimSpace(spec.Command) == "" || strings.ContainsRune(spec.Command, 0) {
		return Output{}, fmt.Errorf("%w: it is empty or has a NUL byte", ErrCommand)
	}
	if len(spec.Command) > CommandBytesMax {
		return Output{}, fmt.Errorf("%w: it has %d bytes, at most %d are allowed", ErrCommand, len(spec.Command), CommandBytesMax)
	}
	if program {
		path, err := exec.LookPath(spec.Argv[0])
		if err != nil {
			return Output{}, fmt.Errorf("%w: %s", proc.ErrNotFound, spec.Argv[0])
		}
		spec.path = path
	}
	closeDir, err := spec.openDir()
	if err != nil {
		return Output{}, fmt.Errorf("sandbox: directory: %w", err)
	}
	defer closeDir()
	if spec.Hide, err = spec.hiddenBelow(); err != nil {
		return Output{}, fmt.Errorf("sandbox: hide: %w", err)
	}
	temp, err := os.MkdirTemp("", "troupe-shell-")
	if err == nil {
		temp, err = filepath.EvalSymlinks(temp)
	}
	if err != nil {
		return Output{}, fmt.Errorf("sandbox: temporary directory: %w", err)
	}
	beforeStart()
	out, err := run(ctx, spec, temp)
	if cleared := clear(temp); err == nil {
		err = cleared
	}
	return out, err
}

// openDir opens the directory, if nobody has, and keeps it open: its number is given to no other until then.
func (s *Spec) openDir() (done func(), err error) {
	done = func() {}
	dir := s.At
	if dir == nil {
		if s.Dir, err = filepath.Abs(s.Dir); err != nil {
			return done, err
		}
		if dir, err = workdir.Open(s.Dir); err != nil {
			return done, err
		}
		done = func() { _ = dir.Close() }
	}
	if s.info, err = dir.Stat(); err != nil {
		done()
	}
	return done, err
}

// hiddenBelow makes the directories that are to be hidden, and names them relative to the one that they lie below.
func (s *Spec) hiddenBelow() (list []string, err error) {
	if len(s.Hide) == 0 {
		return nil, nil
	}
	root, info, err := workdir.Root(s.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	if !os.SameFile(info, s.info) {
		return nil, ErrReplaced
	}
	for _, name := range s.Hide {
		rel, err := filepath.Rel(s.Dir, name)
		if err != nil || rel == "." || !filepath.IsLocal(rel) {
			return nil, fmt.Errorf("%s does not lie below %s", name, s.Dir)
		}
		if err := root.MkdirAll(rel, 0o700); err != nil {
			return nil, err
		}
		list = append(list, rel)
	}
	return list, nil
}

// clear removes the temporary directory, also where a command took rights away.
func clear(temp string) error {
	if os.RemoveAll(temp) == nil {
		return nil
	}
	_ = filepath.WalkDir(temp, func(path string, d os.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return nil
	})
	if err := os.RemoveAll(temp); err != nil {
		return fmt.Errorf("sandbox: temporary directory: %w", err)
	}
	return nil
}

var passedOn = []string{"PATH", "LANG", "LC_ALL", "TZ"}

// environment is all that a command finds in its environment.
func environment(more []string, home string) []string {
	env := []string{"TERM=dumb", "HOME=" + home, "TMPDIR=" + home}
	for _, name := range passedOn {
		given := slices.ContainsFunc(more, func(v string) bool { return strings.HasPrefix(v, name+"=") })
		if v, ok := os.LookupEnv(name); ok && !given {
			env = append(env, name+"="+v)
		}
	}
	return append(env, more...)
}

// Probe runs nothing but `:` and says what is enforced on this system.
func Probe(ctx context.Context) (Report, error) {
	dir, err := os.MkdirTemp("", "troupe-probe-")
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	out, err := Run(ctx, Spec{Command: ":", Dir: dir})
	return out.Report, err
}
