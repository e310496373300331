package eval

import (
	"context"
	"slices"
	"sync"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/mailbox"
)

// cancelWait keeps back the replies and results that are under way when the case cancels its run, until their agents
// have read the cancel: which of the two an agent reads first would be a matter of time.
type cancelWait struct {
	points []Point // of all cancels

	mu    sync.Mutex
	begun map[Point]int            // without Nth
	read  map[string]chan struct{} // by agent; closed when it has read a cancel
}

// cancelWaitMax bounds the wait: a cancel does not come if an agent does something else than before.
const cancelWaitMax = CaseTimeMax / 3

func newCancelWait(c *Case) *cancelWait {
	w := &cancelWait{begun: map[Point]int{}, read: map[string]chan struct{}{}}
	for _, d := range c.Interventions {
		if d.Cancel != "" {
			w.points = append(w.points, d.points()...)
		}
	}
	return w
}

// note notes an entry of a log.
func (w *cancelWait) note(m mailbox.Message) {
	e, err := mailbox.Decode(m.Data)
	if err != nil || m.To.Agent() == mailbox.Super || !slices.ContainsFunc(e.Items, func(i mailbox.Item) bool { return i.Kind == agent.Canceled{}.Kind() }) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.readBy(m.To.Agent()):
	default:
		close(w.readBy(m.To.Agent()))
	}
}

// readBy returns what is closed when an agent has read a cancel; the caller holds the lock.
func (w *cancelWait) readBy(agentID string) chan struct{} {
	if w.read[agentID] == nil {
		w.read[agentID] = make(chan struct{})
	}
	return w.read[agentID]
}

// begin counts a call, and returns how to wait at its end.
func (w *cancelWait) begin(p Point, agentID string) (wait func(context.Context)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun[p]++
	p.Nth = w.begun[p]
	if !slices.Contains(w.points, p) {
		return func(context.Context) {}
	}
	read := w.readBy(agentID)
	return func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, cancelWaitMax)
		defer cancel()
		select {
		case <-read:
		case <-ctx.Done():
		}
	}
}

// points are all events that an intervention waits for.
func (d Intervention) points() []Point {
	return append([]Point{{d.After, d.Of, d.Nth}}, d.And...)
}

// isDue reports whether an event about something is the last one that an intervention waits for.
func (t *caseRun) isDue(d Intervention, kind string, about []string) bool {
	isNow := func(p Point) bool {
		return p.After == kind && slices.Contains(about, p.Of) && t.seen[kind+" "+p.Of] == p.Nth
	}
	return slices.ContainsFunc(d.points(), isNow) && len(t.listUnseen(d)) == 0
}

// listUnseen lists the events that an intervention waits for.
func (t *caseRun) listUnseen(d Intervention) []Point {
	return slices.DeleteFunc(d.points(), func(p Point) bool { return t.seen[p.After+" "+p.Of] >= p.Nth })
}
