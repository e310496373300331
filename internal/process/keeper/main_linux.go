package keeper

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Descriptors of a keeper.
const (
	lifeFD   = 3 + iota // ends when the requesting process is gone
	failedFD            // receives the error if the program did not start, and is closed if it did
	filesFD             // the first of the program's own, which begin at 3 there
)

// Arguments of a keeper, after its name: the numbers of a Description, the path of the program, and the arguments of the
// program, each of which may be as long as the system allows.
const (
	numbersArg = 1 + iota
	pathArg
	programArgs
)

// failedExit is the exit code of a keeper whose program did not start.
const failedExit = 125

// A keeper ends by syscall.Exit: os.Exit runs the exit handlers of the binary first, and
// that of the race detector sleeps for a second.
func init() {
	if len(os.Args) > programArgs && os.Args[0] == Name {
		syscall.Exit(keepProgram(os.Args[numbersArg], os.Args[pathArg], os.Args[programArgs:]))
	}
}

// keepProgram is the main function of a keeper. It runs on the main thread, so that the end of that thread is the
// parent's death for the program.
func keepProgram(numbers, path string, argv []string) int {
	failed := os.NewFile(failedFD, "failed")
	child, err := startKept(numbers, path, argv)
	if err != nil {
		var errno syscall.Errno
		_ = errors.As(err, &errno) // 0: it is none
		_, _ = failed.WriteString(formatNumber(int64(errno)) + " " + err.Error())
		return failedExit
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	_ = failed.Close()
	alone := make(chan struct{})
	go func() {
		life, ignored := os.NewFile(lifeFD, "life"), make([]byte, 1)
		for {
			if _, err := life.Read(ignored); err != nil {
				close(alone)
				return
			}
		}
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
// them. If it returns an error, no process of the program is left.
func startKept(numbers, path string, argv []string) (pid int, err error) {
	program, err := ParseDescription(numbers)
	if err != nil {
		return 0, stepError{"description", err}
	}
	if err := closeOnExec(); err != nil {
		return 0, stepError{"descriptors", err}
	}
	if errno := becomeSubreaper(); errno != 0 {
		return 0, stepError{"subreaper", errno}
	}
	files := []*os.File{os.Stdin, os.Stdout, os.Stderr}
	for i := range program.Files {
		files = append(files, os.NewFile(uintptr(filesFD+i), "file"))
	}
	defer func() {
		for _, f := range files[3:] {
			_ = f.Close()
		}
	}()
	null, err := syscall.Open(os.DevNull, syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return 0, stepError{"null device", err}
	}
	defer func() { _ = syscall.Close(null) }()
	program.Attr.Pdeathsig = syscall.SIGKILL
	p, err := os.StartProcess(path, argv, &os.ProcAttr{Env: os.Environ(), Files: files, Sys: program.Attr})
	if err != nil {
		return 0, err
	}
	for fd := range 3 {
		if err := syscall.Dup3(null, fd, 0); err != nil {
			_ = syscall.Kill(-p.Pid, syscall.SIGKILL)
			go ReapChildren(p.Pid, make(chan syscall.WaitStatus, 1))
			EndChildren()
			return 0, stepError{"standard streams", err}
		}
	}
	return p.Pid, nil
}

// stepError is the error of one step of the start. Package fmt is initialized too late for it.
type stepError struct {
	step string
	err  error
}

func (e stepError) Error() string { return e.step + ": " + e.err.Error() }

func (e stepError) Unwrap() error { return e.err }
