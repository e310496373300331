// Package interrupt turns Ctrl-C and SIGTERM into a stop of a run, and a second one into the
// end of the process.
package interrupt

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/troupe-run/troupe/internal/cli/exit"
)

// Signals turns Ctrl-C and SIGTERM into a stop of the run.
// The second one ends the process.
type Signals struct {
	First       chan struct{}          // closed by the first
	Starting    context.Context        // canceled by the first, until started
	Terminated  atomic.Bool            // it was SIGTERM
	RunBegun    atomic.Bool            // there is a run that can be canceled instead
	Ending      atomic.Bool            // the process is about to end
	LastAct     atomic.Pointer[func()] // what the second one still runs
	Terminal    atomic.Pointer[func()] // puts the terminal back; the second one runs it first
	Farewell    atomic.Pointer[string] // the line on stderr that says what the second one does
	cancelStart context.CancelFunc
	received    chan os.Signal
}

// Catch receives the signals of the process until Stop.
func Catch() *Signals {
	s := &Signals{First: make(chan struct{}), received: make(chan os.Signal, 2)}
	s.Starting, s.cancelStart = context.WithCancel(context.Background())
	signal.Notify(s.received, os.Interrupt, syscall.SIGTERM)
	go func() {
		n := 0
		for got := range s.received {
			n++
			if got == syscall.SIGTERM {
				s.Terminated.Store(true)
			}
			if n > 1 {
				s.exitNow()
			}
			if !s.RunBegun.Load() {
				s.cancelStart()
			}
			close(s.First)
		}
	}()
	return s
}

// killWait is how long the tools of a node in this process may take to die.
const killWait = 2 * time.Second

// exitNow ends the process, and with it the tools that it started.
func (s *Signals) exitNow() {
	s.Ending.Store(true)
	if f := s.Terminal.Load(); f != nil {
		(*f)()
	}
	if text := s.Farewell.Load(); text != nil {
		fmt.Fprintln(os.Stderr, *text)
	}
	if f := s.LastAct.Load(); f != nil {
		done := make(chan struct{})
		go func() {
			(*f)()
			close(done)
		}()
		select {
		case <-done:
		case <-time.After(killWait):
		}
	}
	os.Exit(s.ExitCode())
}

// ExitCode is the exit code of a process that a signal ended.
func (s *Signals) ExitCode() int {
	if s.Terminated.Load() {
		return exit.Terminated
	}
	return exit.Interrupted
}

// Stop lets signals end the process again.
func (s *Signals) Stop() {
	signal.Stop(s.received)
	close(s.received)
	s.cancelStart()
}
