// Package sandbox runs one shell command so that it can do little harm: the command
// writes in one directory and a temporary one, reads what programs need and
// no files of a person, reaches no network, sees no other process, gains no
// privileges, and leaves nothing behind, not even a process that left its group or session.
//
// Systems enforce different parts of this, so every run comes with a Report. On
// Linux it takes no privileges and no other program: namespaces, Landlock, limits of
// the kernel and a helper, which is this very binary started under another name
// (see init). Elsewhere the package controls only the process group, the environment
// and the time, and the Report says so. See docs/sandbox.md.
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

	"github.com/troupe-run/troupe/internal/process"
	"github.com/troupe-run/troupe/internal/workdir"
)

// Limits of one command unless its Spec sets others.
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

// Exact is a file or directory by a path without links, and its identity when the caller checked it.
type Exact struct {
	Path string
	Info os.FileInfo
}

// Spec defines what to run and what it may access.
type Spec struct {
	// Command is given to /bin/sh -c.
	Command string
	// Argv is a program and its arguments, in place of a Command. Its stderr is dropped.
	Argv []string
	// Dir is where the command runs; it may write there and below, unless ReadOnly is set. No part of the path may be a
	// link: see filepath.EvalSymlinks. Run opens it once: if another directory or a link replaces it before the
	// command begins, the command does not begin (ErrReplaced), and a later replacement has no effect.
	Dir string
	// At is Dir as the caller opened it before: the command runs in it, or not at all. Default: Run opens Dir.
	At       *os.File
	ReadOnly bool
	// WriteGit makes the git directories below Dir writable, which are read-only otherwise.
	WriteGit bool
	// Hide are directories below Dir, without links, that the command does not see. Run creates missing ones, so that no
	// command creates them.
	Hide []string
	// Read are further files and directories that the command may read and execute.
	Read []string
	// Exact are such files and directories, too, that the caller has checked: if one was replaced since, the
	// command does not begin (ErrReplaced). The caller keeps them open, because inode numbers may be reused.
	Exact []Exact
	// Env is added to PATH, LANG, LC_ALL, TZ, TERM, HOME and TMPDIR; the command gets nothing
	// else of our environment. HOME and TMPDIR name a directory that is
	// removed after the command.
	Env []string
	// Memory and Processes bound it; 0: MemoryBytesMax, ProcessesMax.
	Memory    int64
	Processes int
	// Output is the most that is kept of the command's output. Default: as package process.
	Output int
	// HeadOnly keeps the beginning of the output, instead of both ends.
	HeadOnly bool
	// Less turns features of the system off, to test what the sandbox enforces without them.
	Less Less

	path string      // of the program
	info os.FileInfo // of Dir
}

// Less names the features that are not used although the system has them.
type Less struct{ Namespaces, Landlock bool }

// Promises that a Report covers.
const (
	Files      = "files"      // the command writes only the directory, and does not read a person's files
	Git        = "git"        // the command writes no git directory below the directory
	Network    = "network"    // the command reaches no network
	Leftovers  = "leftovers"  // no process outlives the command
	Isolation  = "isolation"  // the command sees and signals no other process
	Privileges = "privileges" // the command gains no privileges
	Memory     = "memory"
	Processes  = "processes"
	Trust      = "trust" // the command sees and writes nothing of Spec.Hide; only if Hide is set
)

// Finding reports whether one promise is enforced, and by what or why not.
type Finding struct {
	What string `json:"what"`
	Held bool   `json:"held"`
	How  string `json:"how"`
}

// Report lists what was enforced on this system.
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

// Output is the result of a command. Exit is -1 if a signal ended it.
type Output struct {
	process.Output
	Signal int
	Report Report
}

// beforeStart is called before the helper starts: for tests.
var beforeStart = func() {}

// Run runs a command to its end, or kills it when ctx ends and returns the cause
// of ctx. Stdout and stderr are merged. When Run returns, no process of the command
// is left, as far as the Report says so.
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
			return Output{}, fmt.Errorf("%w: %s", process.ErrNotFound, spec.Argv[0])
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
	if cleared := clearTemp(temp); err == nil {
		err = cleared
	}
	return out, err
}

// openDir opens the directory unless the caller has, and keeps it open: so its inode number is not reused until then.
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
	root, info, err := workdir.OpenRoot(s.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	if !os.SameFile(info, s.info) {
		return nil, ErrReplaced
	}
	for _, name := range s.Hide {
		rel, ok := workdir.Below(s.Dir, name)
		if !ok || rel == "." {
			return nil, fmt.Errorf("%s does not lie below %s", name, s.Dir)
		}
		if err := root.MkdirAll(rel, 0o700); err != nil {
			return nil, err
		}
		list = append(list, rel)
	}
	return list, nil
}

// clearTemp removes the temporary directory, also where a command took rights away.
func clearTemp(temp string) error {
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

// commandEnv returns the whole environment of a command.
func commandEnv(more []string, home string) []string {
	env := []string{"TERM=dumb", "HOME=" + home, "TMPDIR=" + home}
	for _, name := range passedOn {
		given := slices.ContainsFunc(more, func(v string) bool { return strings.HasPrefix(v, name+"=") })
		if v, ok := os.LookupEnv(name); ok && !given {
			env = append(env, name+"="+v)
		}
	}
	return append(env, more...)
}

// Probe runs only `:` and reports what is enforced on this system.
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
