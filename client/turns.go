package client

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// A node serves a bounded number of requests of one verb and connection at once, and refuses
// those that wait there for too long. The requests of one client therefore take turns before they
// are sent: a program may start any number of runs at once.
const (
	// RequestsAtOnce is how many requests of one verb a client sends at once, and how many of them
	// a node serves of one connection at once.
	RequestsAtOnce = 32
	// turnsMax is how many requests of one verb may wait for their turn, and turnPatience for how
	// long, unless ctx is shorter. Beyond that they are refused as a busy node refuses them.
	turnsMax     = 65536
	turnPatience = busyPatience
	crowdedPause = 250 * time.Millisecond
)

// requestTurns lets a bounded number of requests of each verb be in flight. Those that wait are
// served in the order in which they came.
type requestTurns struct {
	mu    sync.Mutex
	verbs map[string]*verbTurns
}

type verbTurns struct {
	slots   chan struct{}
	waiting int
	// unavailable is why the last request of the verb got no answer; nil: it got one.
	unavailable error
}

// take waits for the turn of a request. done ends the turn.
func (t *requestTurns) take(ctx context.Context, verb string) (done func(), err error) {
	v, ok := t.enter(verb)
	if !ok {
		return nil, fmt.Errorf("client: %s: %w", verb, errCrowded)
	}
	defer t.leave(v)
	patience := time.NewTimer(turnPatience)
	defer patience.Stop()
	select {
	case v.slots <- struct{}{}:
		return func() { <-v.slots }, nil
	case <-patience.C:
		return nil, t.explainWait(v, verb)
	case <-ctx.Done():
		return nil, fmt.Errorf("client: %s: the request waited for its turn: %w", verb, ctx.Err())
	}
}

var errCrowded = &Error{Code: CodeLimit, Text: "this program has too many requests of this verb at once", Hint: "ask again in a moment", Retry: crowdedPause}

// enter counts a request that waits for a slot of its verb.
func (t *requestTurns) enter(verb string) (v *verbTurns, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.verbs == nil {
		t.verbs = map[string]*verbTurns{}
	}
	if v = t.verbs[verb]; v == nil {
		v = &verbTurns{slots: make(chan struct{}, RequestsAtOnce)}
		t.verbs[verb] = v
	}
	if v.waiting >= turnsMax {
		return nil, false
	}
	v.waiting++
	return v, true
}

func (t *requestTurns) leave(v *verbTurns) {
	t.mu.Lock()
	defer t.mu.Unlock()
	v.waiting--
}

// note records whether a request of a verb got an answer.
func (t *requestTurns) note(verb string, unavailable error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if v := t.verbs[verb]; v != nil {
		v.unavailable = unavailable
	}
}

// explainWait is the error of a request that had no turn: those before it got no answer, or there are
// too many.
func (t *requestTurns) explainWait(v *verbTurns, verb string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if v.unavailable != nil {
		return v.unavailable
	}
	return fmt.Errorf("client: %s: %w", verb, errCrowded)
}
