package troupetest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/troupe-run/troupe"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/node"
)

// Trace is what a run left behind. Its assertions fail the test of its Node and go on.
type Trace struct {
	// Result and Err are what troupe.Node.Run returned at last.
	Result troupe.Result
	Err    error
	// Events are the events of all agents, each agent's in order of its log, with data of Go types as in
	// troupe.Node.Stream.
	Events []troupe.Event
	// Entries is how many entries the logs of the run hold, and Crashes how often its node was killed.
	Entries, Crashes int

	t testing.TB
}

// readEvents reads the events of a run from its logs.
func (tr *Trace) readEvents(ctx context.Context, c *client.Client, run string) error {
	const follow = false
	return c.Events(ctx, run, nil, follow, func(e client.Event, _ []byte) error {
		tr.Events = append(tr.Events, node.TypedEvent(e))
		return nil
	})
}

// AssertCompleted asserts that the run completed its task with an answer that contains text.
func (tr *Trace) AssertCompleted(text string) {
	tr.t.Helper()
	switch {
	case tr.Err != nil:
		tr.t.Errorf("the run did not complete: %v", tr.Err)
	case !strings.Contains(tr.Result.Text, text):
		tr.t.Errorf("the answer is %q, without %q", tr.Result.Text, text)
	}
}

// AssertParked asserts that the run waits for a person, with a question that contains text.
func (tr *Trace) AssertParked(text string) {
	tr.t.Helper()
	if !errors.Is(tr.Err, troupe.ErrParked) {
		tr.t.Errorf("the run does not wait for a person: %v", tr.Err)
		return
	}
	for _, e := range tr.Events {
		if q, ok := e.Data.(event.AgentParked); ok && e.Kind == event.KindQueryAsked && strings.Contains(q.Question, text) {
			return
		}
	}
	tr.t.Errorf("no question contains %q", text)
}

// AssertCalls asserts how many calls of a tool got their answer, delegations (the tool "delegate") included. A call
// that is made again after a crash is one call: only the tool itself can count its side effects.
func (tr *Trace) AssertCalls(tool string, want int) {
	tr.t.Helper()
	calls := map[string]bool{}
	for _, e := range tr.Events {
		c, ok := e.Data.(event.ToolCall)
		if ok && c.Tool == tool && (e.Kind == event.KindToolFinished || e.Kind == event.KindDelegationFinished) {
			calls[e.Agent+" "+c.Call] = true
		}
	}
	if len(calls) != want {
		tr.t.Errorf("%d calls of %s, want %d", len(calls), tool, want)
	}
}

// AssertOrder asserts that events of these kinds (see package agent/event) occur in this order, with others between
// them.
func (tr *Trace) AssertOrder(kinds ...event.Kind) {
	tr.t.Helper()
	left := kinds
	for _, e := range tr.Events {
		if len(left) > 0 && e.Kind == left[0] {
			left = left[1:]
		}
	}
	if len(left) > 0 {
		tr.t.Errorf("no %s after %v", left[0], kinds[:len(kinds)-len(left)])
	}
}
