package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// keeperName is the name under which a keeper starts. A keeper starts one program, kills all processes
// that the program has started, whatever their group or session, and kills the program too when the
// process that asked for it is gone. A keeper is this very binary: every program that links this package
// can be its own keeper.
//
// It also starts what needs namespaces of its own. A process with a new user namespace begins with a copy of its
// parent's page tables, and each page that the parent writes to afterwards costs a fault: a keeper has few pages, a
// node may have gigabytes.
const keeperName = "troupe-keeper"

// Descriptors of a keeper.
const (
	lifeFD   = 3 + iota // ends when the requesting process is gone
	failedFD            // receives the error if the program did not start, and is closed if it did
	filesFD             // the first of the program's own, which begin at 3 there
)

// keptProgram is what a keeper starts. Its arguments follow as those of the keeper: each may be as long as the system
// allows.
type keptProgram struct {
	Path  string
	Files int // descriptors of the program, from filesFD
	Attr  *syscall.SysProcAttr
}

// keeperFailed is the exit code of a keeper whose program did not start.
const keeperFailed = 125

// keeperEnd is how long a keeper may take, after TermGrace, to find and kill the descendants of a
// program.
const keeperEnd = 10 * time.Second

// keeperStart is how long a keeper may take to start its program.
const keeperStart = 30 * time.Second

// A keeper ends by syscall.Exit: os.Exit runs the exit handlers of the binary first, and
// that of the race detector sleeps for a second.
func init() {
	if len(os.Args) > 2 && os.Args[0] == keeperName {
		syscall.Exit(keepProgram(os.Args[1], os.Args[2:]))
	}
}

// keepProgram is the main function of a keeper. It runs on the main thread, so that the end of that thread is the
// parent's death for the program.
func keepProgram(description string, argv []string) int {
	failed := os.NewFile(failedFD, "failed")
	child, err := startKept(description, argv)
	if err != nil {
		var errno syscall.Errno
		_ = errors.As(err, &errno) // 0: it is none
		_, _ = fmt.Fprintf(failed, "%d %s", int(errno), err)
		return keeperFailed
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	_ = failed.Close()
	alone := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.NewFile(lifeFD, "life"))
		close(alone)
	}()
	ended := make(chan syscall.WaitStatus, 1)
	go ReapChildren(child, ended)
	how, known := syscall.WaitStatus(0), false
	select {
	case how = <-ended:
		known = true
	case <-alone:
	case <-asked:
		_ = syscall.Kill(-child, syscall.SIGTERM)
		timer := time.NewTimer(TermGrace)
		defer timer.Stop()
		select {
		case how = <-ended:
			known = true
		case <-alone:
		case <-timer.C:
		}
	}
	_ = syscall.Kill(-child, syscall.SIGKILL) // a group that is gone is what we want
	EndChildren()
	if !known || how.Signaled() {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // end as the program did: by a signal
	}
	return how.ExitStatus()
}

// startKept starts the program with three descriptors and those of its own, and then closes the keeper's copies of
// them.
func startKept(description string, argv []string) (pid int, err error) {
	var program keptProgram
	if err := json.Unmarshal([]byte(description), &program); err != nil {
		return 0, fmt.Errorf("description: %w", err)
	}
	if err := unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC); err != nil && !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EINVAL) {
		return 0, fmt.Errorf("descriptors: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("subreaper: %w", err)
	}
	files := []*os.File{os.Stdin, os.Stdout, os.Stderr}
	for i := range program.Files {
		files = append(files, os.NewFile(uintptr(filesFD+i), "file"))
	}
	defer closeAll(files[3:]...)
	program.Attr.Pdeathsig = syscall.SIGKILL
	p, err := os.StartProcess(program.Path, argv, &os.ProcAttr{Env: os.Environ(), Files: files, Sys: program.Attr})
	if err != nil {
		return 0, err
	}
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	for fd := 0; fd < 3 && err == nil; fd++ {
		err = unix.Dup3(null, fd, 0)
	}
	return p.Pid, err
}

// keeperHandle is the parent's side of a keeper.
type keeperHandle struct {
	life, failed *os.File
	childEnds    []*os.File
}

// wrapInKeeper makes a command that has not started, and has its group, the command of a keeper. nil: this system
// cannot.
func wrapInKeeper(cmd *exec.Cmd) (*keeperHandle, error) {
	if _, err := os.Stat("/proc/self/exe"); err != nil || cmd.Err != nil {
		return nil, nil
	}
	theirLife, life, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	failed, theirFailed, err := os.Pipe()
	if err != nil {
		closeAll(theirLife, life)
		return nil, err
	}
	description, err := json.Marshal(keptProgram{Path: cmd.Path, Files: len(cmd.ExtraFiles), Attr: cmd.SysProcAttr})
	if err != nil {
		closeAll(theirLife, life, failed, theirFailed)
		return nil, err
	}
	ends := []*os.File{theirLife, theirFailed}
	cmd.Path, cmd.Args, cmd.ExtraFiles = "/proc/self/exe", append([]string{keeperName, string(description)}, cmd.Args...), append(ends, cmd.ExtraFiles...)
	cmd.SysProcAttr = nil
	ownGroup(cmd)
	return &keeperHandle{life: life, failed: failed, childEnds: ends}, nil
}

// awaitStart returns once the program runs, or with the reason why it does not. It is called once, after the
// keeper was started.
func (k *keeperHandle) awaitStart() error {
	closeAll(k.childEnds...)
	_ = k.failed.SetReadDeadline(time.Now().Add(keeperStart))
	why, _ := io.ReadAll(k.failed) // a slower start is waited for like any program
	_ = k.failed.Close()
	if len(why) == 0 {
		return nil
	}
	number, text, _ := strings.Cut(string(why), " ")
	errno, err := strconv.Atoi(number)
	if err != nil || errno == 0 {
		return errors.New(text)
	}
	return fmt.Errorf("%s%w", strings.TrimSuffix(text, syscall.Errno(errno).Error()), syscall.Errno(errno))
}

// release ends the hold: a keeper that is still running kills its program.
func (k *keeperHandle) release() { closeAll(k.life) }

// abandon is for a keeper that was not started.
func (k *keeperHandle) abandon() {
	if k == nil {
		return
	}
	closeAll(k.childEnds...)
	closeAll(k.life, k.failed)
}
