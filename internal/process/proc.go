// Package process runs one external program so that no process of it is left behind: in its
// own process group that is killed as a whole, with an explicit environment, bounded memory
// for its output, and no more time than its context allows.
package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/troupe-run/troupe/internal/process/keeper"
)

// SandboxHelper is the name under which the helper of the sandbox starts.
const SandboxHelper = "troupe-sandbox"

// Limits of one program.
const (
	// StdoutBytesMax and StderrBytesMax are kept unless the Spec says otherwise.
	StdoutBytesMax = 1 << 20
	StderrBytesMax = 16 << 10
	// TermGrace is how long a group may take to end after SIGTERM, before SIGKILL.
	TermGrace = keeper.TermGrace
	// DrainGrace is how long output is read after the program has ended: a process that left
	// the group may hold the pipe open for ever.
	DrainGrace = 300 * time.Millisecond
	// pipeBytesMax is what is still read of a pipe after DrainGrace: as much as a pipe holds
	// unless its owner enlarges it (pipe(7)), so that a process that writes for ever is left.
	pipeBytesMax = 64 << 10
)

// Errors of a program that did not start: it does not exist, or the system did not start
// it.
var (
	ErrNotFound = errors.New("process: program not found")
	ErrStart    = errors.New("process: start")
)

// Spec describes the program to run.
type Spec struct {
	Argv  []string // never empty; no shell is involved unless Argv names one
	Dir   string
	Env   []string // the whole environment; nil is an empty one
	Stdin []byte
	// StdoutMax bounds how much of stdout is kept. Default StdoutBytesMax.
	StdoutMax int
	// HeadOnly keeps the beginning of stdout only, instead of both ends.
	HeadOnly bool
	// Path is the program's file, where Argv[0] is only a name for it.
	Path string
	// Files are further descriptors of the program, from 3.
	Files []*os.File
	// Attr are the attributes of its start. The program always gets its own process group; with
	// its own session it leads one anyway.
	Attr *syscall.SysProcAttr
	// Grace is how long the program may take to end after SIGTERM. Default TermGrace. A program with a keeper has
	// TermGrace in any case.
	Grace time.Duration
}

// Output is what a program left.
type Output struct {
	Stdout      []byte // both ends with a mark between them where it was too long
	StdoutBytes int64  // all that was printed
	Cut         bool   // Stdout is not all of it
	Stderr      []byte // the end of it
	Exit        int    // -1 when a signal ended it
}

// Run runs a program to its end, or kills its group when ctx ends, and then
// returns the cause of ctx. A non-zero exit is no error: see Output.Exit.
func Run(ctx context.Context, spec Spec) (Output, error) {
	if err := ctx.Err(); err != nil {
		return Output{}, context.Cause(ctx)
	}
	defer countProgram(ctx)()
	if spec.StdoutMax <= 0 {
		spec.StdoutMax = StdoutBytesMax
	}
	if spec.Grace <= 0 {
		spec.Grace = TermGrace
	}
	cmd := exec.Command(spec.Argv[0], spec.Argv[1:]...)
	if spec.Path != "" {
		cmd = &exec.Cmd{Path: spec.Path, Args: spec.Argv}
	}
	cmd.Dir, cmd.Env, cmd.ExtraFiles, cmd.SysProcAttr = spec.Dir, spec.Env, spec.Files, spec.Attr
	if cmd.Env == nil {
		cmd.Env = []string{}
	}
	stdin, err := inputFile(spec.Stdin)
	if err != nil {
		return Output{}, fmt.Errorf("process: stdin: %w", err)
	}
	defer func() { _ = stdin.Close() }()
	cmd.Stdin = stdin
	cmd.WaitDelay = DrainGrace // for stdin that the child does not read
	ownGroup(cmd)
	kept, err := wrapInKeeper(cmd)
	if err != nil {
		return Output{}, fmt.Errorf("process: keeper: %w", err)
	}
	head := spec.StdoutMax * 3 / 4
	if spec.HeadOnly {
		head = spec.StdoutMax
	}
	stdout, err := newPipeReader(head, spec.StdoutMax-head)
	if err != nil {
		kept.abandon()
		return Output{}, fmt.Errorf("process: stdout: %w", err)
	}
	stderr, err := newPipeReader(0, StderrBytesMax)
	if err != nil {
		kept.abandon()
		stdout.close()
		return Output{}, fmt.Errorf("process: stderr: %w", err)
	}
	cmd.Stdout, cmd.Stderr = stdout.w, stderr.w
	if err := startProgram(cmd, kept); err != nil {
		stdout.close()
		stderr.close()
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) && spec.Dir == "" {
			return Output{}, fmt.Errorf("%w: %s", ErrNotFound, spec.Argv[0])
		}
		return Output{}, fmt.Errorf("%w %s: %w", ErrStart, spec.Argv[0], err)
	}
	if kept != nil {
		spec.Grace = TermGrace + keeperEnd // a keeper gives its program TermGrace, whatever the Spec says
		defer kept.release()
	}
	stdout.startReading()
	stderr.startReading()
	err = awaitProgram(ctx, cmd, spec.Grace)
	stdout.drain()
	stderr.drain()
	out := Output{Stderr: stderr.kept.joinEnds(), StdoutBytes: stdout.kept.total, Exit: cmd.ProcessState.ExitCode()}
	out.Stdout, out.Cut = stdout.kept.joinEnds(), stdout.kept.lostBytes() > 0
	return out, err
}

// startProgram starts a program, by its keeper if it has one.
func startProgram(cmd *exec.Cmd, kept *keeperHandle) error {
	if kept == nil {
		return cmd.Start()
	}
	if err := cmd.Start(); err != nil {
		kept.abandon()
		return err
	}
	if err := kept.awaitStart(); err != nil {
		_ = cmd.Wait() // it has ended already
		kept.release()
		return err
	}
	return nil
}

// awaitProgram returns when the leader has ended and its group is gone.
func awaitProgram(ctx context.Context, cmd *exec.Cmd, grace time.Duration) error {
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var err, canceled error
	select {
	case err = <-ended:
	case <-ctx.Done():
		canceled = context.Cause(ctx)
		terminateGroup(cmd)
		timer := time.NewTimer(grace)
		select {
		case err = <-ended:
			timer.Stop()
		case <-timer.C:
			killGroup(cmd)
			err = <-ended
		}
	}
	killGroup(cmd) // the processes that the leader left in its group
	if canceled != nil {
		return canceled
	}
	var exit *exec.ExitError
	if err == nil || errors.As(err, &exit) || errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	return fmt.Errorf("process: wait: %w", err)
}

// pipeReader reads a pipe and keeps both ends of the data.
type pipeReader struct {
	r, w *os.File
	kept endsBuffer
	done chan struct{}
}

func newPipeReader(head, tail int) (*pipeReader, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &pipeReader{r: r, w: w, kept: endsBuffer{headMax: head, tailMax: tail}, done: make(chan struct{})}, nil
}

func (s *pipeReader) close() {
	_ = s.r.Close()
	_ = s.w.Close()
}

func (s *pipeReader) startReading() {
	_ = s.w.Close()
	go func() {
		defer close(s.done)
		if _, err := io.Copy(&s.kept, s.r); !errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		// After its deadline a file is not read, whatever the pipe contains: on a machine so busy
		// that this goroutine has not run until then, it contains the whole output.
		copyWaiting(&s.kept, s.r, pipeBytesMax)
	}()
}

// drain waits for the end of the pipe, but not for ever.
func (s *pipeReader) drain() {
	_ = s.r.SetReadDeadline(time.Now().Add(DrainGrace))
	<-s.done
	_ = s.r.Close()
}
