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
	"github.com/troupe-run/troupe/internal/process/keeper"
)

// helperName is the name under which the helper is started.
const helperName = process.SandboxHelper

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
		syscall.Exit(runHelper())
	}
}

// helperFailed is the helper's exit code where the command did not begin.
const helperFailed = 125

// runHelper is the helper: it shuts itself in, starts the command, and ends with it.
func runHelper() int {
	say := json.NewEncoder(os.NewFile(sayFD, "say"))
	hear := bufio.NewReader(os.NewFile(hearFD, "hear"))
	fail := func(err error) int {
		_ = say.Encode(helperReport{Failed: err.Error(), Useless: errors.Is(err, errSpaces), Replaced: errors.Is(err, ErrReplaced)})
		return helperFailed
	}
	line, err := hear.ReadBytes('\n')
	if err != nil {
		return fail(fmt.Errorf("no task: %w", err))
	}
	var t helperTask
	if err := json.Unmarshal(line, &t); err != nil {
		return fail(fmt.Errorf("task: %w", err))
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fail(fmt.Errorf("subreaper: %w", err))
	}
	child, err := startConfined(t, say)
	if err != nil {
		return fail(err)
	}
	alone := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, hear) // until the caller stops waiting
		close(alone)
	}()
	ended := make(chan syscall.WaitStatus, 1)
	go keeper.ReapChildren(child, ended)
	end := helperReport{Exit: new(int)}
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
		keeper.EndChildren()
	}
	_ = say.Encode(end)
	return 0
}

// startConfined confines the helper and starts the command. Privileges belong to a thread:
// one thread gives up its own, starts the command, and ends, so that the confined
// command cannot reach any part of the helper.
func startConfined(t helperTask, say *json.Encoder) (child int, err error) {
	s := &confinement{task: t}
	if err := s.confineProcess(); err != nil {
		return 0, err
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		err := s.confineThread()
		if err == nil {
			err = say.Encode(helperReport{Report: s.report})
		}
		if err == nil {
			child, err = s.startProgram()
		}
		done <- err
	}()
	err = <-done
	return child, err
}

// startProgram starts the program from this thread, in the directory that this process is in, with three descriptors.
func (s *confinement) startProgram() (pid int, err error) {
	stderr := os.Stdout
	if s.task.Quiet {
		if stderr, err = os.OpenFile(os.DevNull, os.O_WRONLY, 0); err != nil {
			return 0, err
		}
		defer func() { _ = stderr.Close() }()
	}
	p, err := os.StartProcess(s.task.Path, s.task.Argv, &os.ProcAttr{Env: s.commandEnv(), Files: []*os.File{os.Stdin, os.Stdout, stderr}})
	if err != nil {
		return 0, err
	}
	return p.Pid, nil
}
