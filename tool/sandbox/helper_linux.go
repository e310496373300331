package sandbox

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/troupe-run/troupe/internal/process"
)

// helperName is the name under which the helper is started.
const helperName = "troupe-sandbox"

// Descriptors of the helper.
const (
	hearFD = 3 + iota // its task; then it stays open until the caller stops waiting
	sayFD
)

// softEnd is how long a command may take to end by itself after SIGTERM.
const softEnd = 500 * time.Millisecond

// A binary that was started under this name is the helper: every program that
// links this package can be its own, and no path has to be known or trusted.
//
// It ends by syscall.Exit: os.Exit runs the exit handlers of the binary first, and
// that of the race detector sleeps for a second.
func init() {
	if len(os.Args) == 1 && os.Args[0] == helperName {
		syscall.Exit(help())
	}
}

// helperFailed is the helper's exit code where the command did not begin.
const helperFailed = 125

// help is the helper: it shuts itself in, starts the command, and ends with it.
func help() int {
	say := json.NewEncoder(os.NewFile(sayFD, "say"))
	hear := bufio.NewReader(os.NewFile(hearFD, "hear"))
	fail := func(err error) int {
		_ = say.Encode(told{Failed: err.Error(), Useless: errors.Is(err, errSpaces), Replaced: errors.Is(err, ErrReplaced)})
		return helperFailed
	}
	line, err := hear.ReadBytes('\n')
	if err != nil {
		return fail(fmt.Errorf("no task: %w", err))
	}
	var t task
	if err := json.Unmarshal(line, &t); err != nil {
		return fail(fmt.Errorf("task: %w", err))
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fail(fmt.Errorf("subreaper: %w", err))
	}
	child, err := start(t, say)
	if err != nil {
		return fail(err)
	}
	alone := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, hear) // until the caller stops waiting
		close(alone)
	}()
	ended := make(chan syscall.WaitStatus, 1)
	go process.Reap(child, ended)
	end := told{Exit: new(int)}
	*end.Exit = -1
	select {
	case how := <-ended:
		*end.Exit = how.ExitStatus()
		if how.Signaled() {
			end.Signal = int(how.Signal())
		}
	case <-asked:
		timer := time.NewTimer(softEnd)
		defer timer.Stop()
		select {
		case <-ended:
		case <-alone:
		case <-timer.C:
		}
	case <-alone:
	}
	if !t.Spaces { // else the kernel kills all of the namespace when we end
		process.EndChildren()
	}
	_ = say.Encode(end)
	return 0
}

// start confines the helper and starts the command. Privileges belong to a thread:
// one thread gives up its own, starts the command, and ends, so that the confined
// command cannot reach any part of the helper.
func start(t task, say *json.Encoder) (child int, err error) {
	s := &shutter{task: t}
	if err := s.shut(); err != nil {
		return 0, err
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		err := s.bind()
		if err == nil {
			err = say.Encode(told{Report: s.report})
		}
		if err == nil {
			child, err = s.exec()
		}
		done <- err
	}()
	err = <-done
	return child, err
}

// exec starts the program from this thread, in the directory that this process is in, with three descriptors.
func (s *shutter) exec() (pid int, err error) {
	stderr := os.Stdout
	if s.task.Quiet {
		if stderr, err = os.OpenFile(os.DevNull, os.O_WRONLY, 0); err != nil {
			return 0, err
		}
		defer func() { _ = stderr.Close() }()
	}
	p, err := os.StartProcess(s.task.Path, s.task.Argv, &os.ProcAttr{Env: s.env(), Files: []*os.File{os.Stdin, os.Stdout, stderr}})
	if err != nil {
		return 0, err
	}
	return p.Pid, nil
}
