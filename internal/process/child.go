package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"
)

// Child is a program that runs until it is stopped, and communicates through its stdin and
// stdout. Its group ends with it, and with this process, even if this process is killed.
type Child struct {
	Stdin  *os.File
	Stdout *os.File

	cmd      *exec.Cmd
	stderr   *tailBuffer
	done     chan struct{}
	release  func()
	grace    time.Duration // to end after SIGTERM
	stopOnce sync.Once
}

// Start starts a program. The caller must Stop it.
func Start(spec Spec) (*Child, error) {
	cmd := exec.Command(spec.Argv[0], spec.Argv[1:]...)
	cmd.Dir, cmd.Env = spec.Dir, spec.Env
	if cmd.Env == nil {
		cmd.Env = []string{}
	}
	ownGroup(cmd)
	kept, err := wrapInKeeper(cmd)
	if err != nil {
		return nil, fmt.Errorf("process: keeper: %w", err)
	}
	c := &Child{cmd: cmd, stderr: &tailBuffer{kept: endsBuffer{tailMax: StderrBytesMax}}, done: make(chan struct{})}
	in, stdin, err := os.Pipe()
	if err != nil {
		kept.abandon()
		return nil, fmt.Errorf("process: stdin: %w", err)
	}
	stdout, out, err := os.Pipe()
	if err != nil {
		kept.abandon()
		closeAll(in, stdin)
		return nil, fmt.Errorf("process: stdout: %w", err)
	}
	c.Stdin, c.Stdout = stdin, stdout
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, c.stderr
	cmd.WaitDelay = DrainGrace // for stderr that another process holds open
	err = startProgram(cmd, kept)
	closeAll(in, out)
	if err != nil {
		closeAll(stdin, stdout)
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) && spec.Dir == "" {
			return nil, fmt.Errorf("%w: %s", ErrNotFound, spec.Argv[0])
		}
		return nil, fmt.Errorf("process: start %s: %w", spec.Argv[0], err)
	}
	var unguarded error
	if kept != nil {
		c.release, c.grace = kept.release, TermGrace+keeperEnd
	} else {
		c.grace = TermGrace
		c.release, unguarded = guardGroup(cmd.Process.Pid)
	}
	go c.awaitEnd()
	if unguarded != nil {
		c.Stop()
		return nil, fmt.Errorf("process: guard of %s: %w", spec.Argv[0], unguarded)
	}
	return c, nil
}

// awaitEnd kills the processes that the leader left, so that its stdout ends too.
func (c *Child) awaitEnd() {
	_ = c.cmd.Wait() // the outcome is in its state
	killGroup(c.cmd)
	c.release()
	_ = c.Stdout.SetReadDeadline(time.Now().Add(DrainGrace))
	close(c.done)
}

// Done is closed when the program has ended.
func (c *Child) Done() <-chan struct{} { return c.done }

// Stderr returns the end of the process's output there.
func (c *Child) Stderr() string { return c.stderr.text() }

// Stop ends the program and its group: with SIGTERM, then by force. It returns when they
// are gone.
func (c *Child) Stop() {
	c.stopOnce.Do(func() {
		_ = c.Stdin.Close()
		for _, then := range []struct {
			after time.Duration
			end   func(*exec.Cmd)
		}{{TermGrace, terminateGroup}, {c.grace, killGroup}} {
			timer := time.NewTimer(then.after)
			select {
			case <-c.done:
			case <-timer.C:
				then.end(c.cmd)
			}
			timer.Stop()
		}
		<-c.done
		_ = c.Stdout.Close()
	})
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// tailBuffer keeps the end of the output, for a reader in another goroutine.
type tailBuffer struct {
	mu   sync.Mutex
	kept endsBuffer
}

func (t *tailBuffer) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.kept.Write(p)
}

func (t *tailBuffer) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.kept.joinEnds())
}
