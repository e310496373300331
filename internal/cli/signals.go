package cli

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

// signals turns Ctrl-C and SIGTERM into a stop of the run.
// The second one ends the process.
type signals struct {
	first      chan struct{}          // closed by the first
	starting   context.Context        // canceled by the first, until started
	terminated atomic.Bool            // it was SIGTERM
	begun      atomic.Bool            // there is a run that can be canceled instead
	second     atomic.Bool            // the process is about to end
	last       atomic.Pointer[func()] // what the second one still runs
	end        context.CancelFunc
	in         chan os.Signal
}

func catch() *signals {
	s := &signals{first: make(chan struct{}), in: make(chan os.Signal, 2)}
	s.starting, s.end = context.WithCancel(context.Background())
	signal.Notify(s.in, os.Interrupt, syscall.SIGTERM)
	go func() {
		n := 0
		for got := range s.in {
			n++
			if got == syscall.SIGTERM {
				s.terminated.Store(true)
			}
			if n > 1 {
				s.kill()
			}
			if !s.begun.Load() {
				s.end()
			}
			close(s.first)
		}
	}()
	return s
}

// killWait is how long the tools of a node in this process may take to die.
const killWait = 2 * time.Second

// kill ends the process, and with it the tools that it started.
func (s *signals) kill() {
	s.second.Store(true)
	if f := s.last.Load(); f != nil {
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
	os.Exit(s.code())
}

func (s *signals) code() int {
	if s.terminated.Load() {
		return exitTerminated
	}
	return exitInterrupted
}

func (s *signals) stop() {
	signal.Stop(s.in)
	close(s.in)
	s.end()
}
