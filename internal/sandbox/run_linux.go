package sandbox

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/process"
)

// helperTask is what the helper reads first. It comes through a pipe whose other end stays
// open as long as the waiting process lives.
type helperTask struct {
	Argv      []string     `json:"argv"`
	Path      string       `json:"path"`  // of the program
	Quiet     bool         `json:"quiet"` // its stderr is dropped
	Dir       exactPlace   `json:"dir"`
	Exact     []exactPlace `json:"exact"`
	ReadOnly  bool         `json:"read_only"`
	WriteGit  bool         `json:"write_git"`
	Hide      []string     `json:"hide"` // relative
	Temp      string       `json:"temp"`
	Read      []string     `json:"read"`
	Env       []string     `json:"env"`
	Memory    int64        `json:"memory"`
	Processes int          `json:"processes"`
	User      bool         `json:"user"`       // it has a user namespace of its own
	Spaces    bool         `json:"namespaces"` // and others
	Landlock  bool         `json:"landlock"`
	Why       string       `json:"why"` // there are no namespaces
}

// exactPlace identifies a file or directory by name and inode: the helper resolves the name in its own namespace, where
// it can mount what it has opened, and does not begin if the name leads elsewhere.
type exactPlace struct {
	Path string `json:"path"`
	Dev  uint64 `json:"dev"`
	Ino  uint64 `json:"ino"`
}

func placeOf(path string, info os.FileInfo) exactPlace {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return exactPlace{Path: path} // the number of no file
	}
	return exactPlace{path, stat.Dev, stat.Ino}
}

// helperReport is what the helper reports: what it enforced, then how the command ended, or
// why it did not begin.
type helperReport struct {
	Report Report `json:"report,omitempty"`
	Exit   *int   `json:"exit,omitempty"`
	Signal int    `json:"signal,omitempty"`
	Failed string `json:"failed,omitempty"`
	// Useless: the system created namespaces, but permits nothing in them.
	Useless bool `json:"useless,omitempty"`
	// Replaced: a place is now another file or directory.
	Replaced bool `json:"replaced,omitempty"`
}

// errSpaces: some systems create namespaces and refuse mounts in them (AppArmor of
// Ubuntu since 24.04, and of container runtimes).
var errSpaces = errors.New("nothing may be done in namespaces")

// endGrace is how long a helper without a process namespace may take to find and
// kill everything that its command has started. With a namespace, the kernel does it at once.
const endGrace = 10 * time.Second

// toldWait is how long the caller waits for the helper's report once the helper is gone.
const toldWait = time.Second

// namespaceSet is a set of namespaces for the helper to begin in.
type namespaceSet struct {
	user bool
	attr *syscall.SysProcAttr
}

const apart = unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS

// helperCaps are the rights that the helper has in namespaces of its own, and
// gives up before the command begins.
var helperCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP, unix.CAP_NET_ADMIN, unix.CAP_SYS_RESOURCE}

// namespaceSets are the namespaces to try, the best first.
func namespaceSets() []namespaceSet {
	uid, gid := os.Geteuid(), os.Getegid()
	list := []namespaceSet{{true, &syscall.SysProcAttr{Setsid: true, Cloneflags: unix.CLONE_NEWUSER | apart, AmbientCaps: helperCaps,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}}}}
	if uid == 0 { // where user namespaces are forbidden, root may still create the others
		list = append(list, namespaceSet{false, &syscall.SysProcAttr{Setsid: true, Cloneflags: apart}})
	}
	return list
}

// spaced is true once a command of this process ran in namespaces. What Probe has found
// must stay true for later commands, or they do not run.
var spaced atomic.Bool

func run(ctx context.Context, spec Spec, temp string) (Output, error) {
	if spec.Memory <= 0 {
		spec.Memory = MemoryBytesMax
	}
	if spec.Processes <= 0 {
		spec.Processes = ProcessesMax
	}
	t := helperTask{Argv: []string{"sh", "-c", spec.Command}, Path: "/bin/sh", Dir: placeOf(spec.Dir, spec.info), ReadOnly: spec.ReadOnly, WriteGit: spec.WriteGit, Hide: spec.Hide, Temp: temp, Read: spec.Read, Env: commandEnv(spec.Env, temp), Memory: spec.Memory, Processes: spec.Processes,
		Landlock: !spec.Less.Landlock, Why: "namespaces are left out"}
	for _, e := range spec.Exact {
		t.Exact = append(t.Exact, placeOf(e.Path, e.Info))
	}
	if len(spec.Argv) > 0 {
		t.Argv, t.Path, t.Quiet = spec.Argv, spec.path, true
	}
	if !spec.Less.Namespaces {
		for _, s := range namespaceSets() {
			t.Spaces, t.User = true, s.user
			out, err := runInHelper(ctx, t, s.attr, process.TermGrace, spec)
			if !errors.Is(err, process.ErrStart) && !errors.Is(err, errSpaces) {
				if len(out.Report) > 0 {
					spaced.Store(true)
				}
				return out, err
			}
			t.Why = err.Error()
		}
		if spaced.Load() { // a caller may rely on it
			return Output{}, fmt.Errorf("sandbox: the command did not run: this system gave namespaces before, and does not now: %s", t.Why)
		}
	}
	t.Spaces, t.User = false, false
	return runInHelper(ctx, t, &syscall.SysProcAttr{Setsid: true}, endGrace, spec)
}

// runInHelper starts the helper and waits for it.
func runInHelper(ctx context.Context, t helperTask, attr *syscall.SysProcAttr, grace time.Duration, spec Spec) (Output, error) {
	hear, say, err := os.Pipe()
	if err != nil {
		return Output{}, fmt.Errorf("sandbox: %w", err)
	}
	defer func() { _ = hear.Close() }()
	read, write, err := os.Pipe()
	if err != nil {
		_ = say.Close()
		return Output{}, fmt.Errorf("sandbox: %w", err)
	}
	defer func() { _ = write.Close() }() // its end tells the helper that the caller no longer waits
	go func() { _ = json.NewEncoder(write).Encode(t) }()
	out, err := process.Run(ctx, process.Spec{Argv: []string{helperName}, Path: "/proc/self/exe", Dir: "/", Env: t.Env, Files: []*os.File{read, say}, Attr: attr,
		Grace: grace, StdoutMax: spec.Output, HeadOnly: spec.HeadOnly})
	_ = read.Close()
	_ = say.Close()
	if err != nil && errors.Is(err, process.ErrStart) {
		return Output{}, err
	}
	o := Output{Output: out}
	_ = hear.SetReadDeadline(time.Now().Add(toldWait)) // a process that keeps it open cannot block the caller
	o, heard := readReport(o, hear)
	switch {
	case err != nil:
		return o, err
	case heard.Useless:
		return o, fmt.Errorf("%w: %s", errSpaces, heard.Failed)
	case heard.Replaced:
		return o, fmt.Errorf("sandbox: %s: %w", heard.Failed, ErrReplaced)
	case heard.Failed != "":
		return o, fmt.Errorf("sandbox: %s", heard.Failed)
	case heard.Exit == nil:
		return o, fmt.Errorf("sandbox: the helper ended without a word: exit code %d, %s", out.Exit, clip.FirstLine(string(out.Stderr)))
	}
	o.Exit, o.Signal = *heard.Exit, heard.Signal
	return o, nil
}

func readReport(o Output, hear *os.File) (Output, helperReport) {
	var last helperReport
	lines := bufio.NewScanner(hear)
	for lines.Scan() {
		var t helperReport
		if json.Unmarshal(lines.Bytes(), &t) != nil {
			continue
		}
		if t.Report != nil {
			o.Report = t.Report
		}
		last = t
	}
	return o, last
}
