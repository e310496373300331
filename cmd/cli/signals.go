package main

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// signals turns Ctrl-C and SIGTERM into something that a run can be stopped by.
// The second one ends the process.
type signals struct {
	first      chan struct{}   // closed by the first
	starting   context.Context // canceled by the first, until started
	terminated atomic.Bool     // it was SIGTERM
	begun      atomic.Bool     // there is a run that can be canceled instead
	restore    atomic.Pointer[func()]
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
				if f := s.restore.Load(); f != nil {
					(*f)()
				}
				os.Exit(s.code())
			}
			if !s.begun.Load() {
				s.end()
			}
			close(s.first)
		}
	}()
	return s
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
