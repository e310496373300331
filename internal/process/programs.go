package process

import (
	"context"
	"sync"
	"time"
)

// ProgramCounter counts the programs that Run starts in its contexts, so that a stopping node can wait until they
// are gone. The zero value is ready.
type ProgramCounter struct {
	mu      sync.Mutex
	running int
	idle    chan struct{} // closed when nothing runs; nil: no goroutine waits
}

type programsKey struct{}

// CountIn returns a context whose programs are counted.
func (p *ProgramCounter) CountIn(ctx context.Context) context.Context {
	return context.WithValue(ctx, programsKey{}, p)
}

// countProgram counts a program of a context until the result is called.
func countProgram(ctx context.Context) (end func()) {
	p, ok := ctx.Value(programsKey{}).(*ProgramCounter)
	if !ok {
		return func() {}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running++
	return p.programEnded
}

func (p *ProgramCounter) programEnded() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running--; p.running == 0 && p.idle != nil {
		close(p.idle)
		p.idle = nil
	}
}

// EndMax is the longest that Run takes to return after its context has ended.
const EndMax = TermGrace + keeperEnd + 2*DrainGrace

// Wait returns true when no program runs any more, or false after a time.
func (p *ProgramCounter) Wait(limit time.Duration) bool {
	p.mu.Lock()
	if p.running == 0 {
		p.mu.Unlock()
		return true
	}
	if p.idle == nil {
		p.idle = make(chan struct{})
	}
	none := p.idle
	p.mu.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-none:
		return true
	case <-timer.C:
		return false
	}
}
