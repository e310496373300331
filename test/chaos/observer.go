package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
)

// observer records by its events which node acts for which actor, and so how long after a
// death another node does.
type observer struct {
	mu sync.Mutex
	// acts is the node that acted last, by run and address of the actor.
	acts map[string]map[string]string
	// orphans are the actors of a failed node.
	orphans map[string]*fault
	takes   []takenActor
	faults  []*fault
	// frozen are the actors for whose outcome the user waits, and until when; zero: their
	// node is still frozen.
	frozen map[string]time.Time
	// told lists what was seen of unfinished runs, slowest that of the run that took longest.
	told    map[string][]seenEvent
	slowest []seenEvent
}

// seenEvent is one event.
type seenEvent struct {
	at               time.Time
	addr, node, kind string
}

// takenActor is one actor taken over.
type takenActor struct {
	after *fault
	took  time.Duration
}

// noteEvent records one event.
func (w *observer) noteEvent(e client.Event) {
	at, _, _ := strings.Cut(e.ID, "#")
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noteRun(e, at)
	if b := w.orphans[at]; b != nil && b.node != e.Node {
		w.takes = append(w.takes, takenActor{b, time.Since(b.at)})
		delete(w.orphans, at)
	}
	if w.acts[e.Run] == nil {
		w.acts[e.Run] = map[string]string{}
	}
	switch e.Kind {
	case event.KindRunFinished:
		delete(w.acts, e.Run)
	case event.KindAgentFinished:
		delete(w.acts[e.Run], at)
	default:
		w.acts[e.Run][at] = e.Node
	}
}

// noteRun records what was seen of a run, for the run that took longest.
func (w *observer) noteRun(e client.Event, at string) {
	list := append(w.told[e.Run], seenEvent{time.Now(), at, e.Node, e.Kind})
	w.told[e.Run] = list
	if e.Kind != event.KindRunFinished {
		return
	}
	delete(w.told, e.Run)
	if durationOf(list) > durationOf(w.slowest) {
		w.slowest = list
	}
}

func durationOf(list []seenEvent) time.Duration {
	if len(list) == 0 {
		return 0
	}
	return list[len(list)-1].at.Sub(list[0].at)
}

// writeSlowest writes what was seen of the run that took longest.
func (w *observer) writeSlowest(path string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var text strings.Builder
	for _, s := range w.slowest {
		fmt.Fprintf(&text, "%8v %-5s %s %s\n", s.at.Sub(w.slowest[0].at).Round(time.Millisecond), s.node, s.addr, s.kind)
	}
	return os.WriteFile(path, []byte(text.String()), 0o644)
}

// faultBegins records that a fault of a node is about to happen.
func (w *observer) faultBegins(b *fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, actors := range w.acts {
		for at, node := range actors {
			if node == b.node {
				w.orphans[at] = b
			}
		}
	}
	w.faults = append(w.faults, b)
}

// holdUser makes the user wait for the outcome of an actor, until a moment.
func (w *observer) holdUser(at string, until time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.frozen == nil {
		w.frozen = map[string]time.Time{}
	}
	w.frozen[at] = until
}

// userWaits reports whether the user waits.
func (w *observer) userWaits(at string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	until, ok := w.frozen[at]
	return ok && (until.IsZero() || time.Now().Before(until))
}

// faultEnds records that a fault is over.
func (w *observer) faultEnds(b *fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	b.end = time.Now()
}

// listTakeovers returns the times of all takeovers after a kind of fault, and of those with no
// other fault near: only these show how long a takeover takes.
func (w *observer) listTakeovers(kind string, near time.Duration) (all, alone []time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.takes {
		if t.after.kind != kind {
			continue
		}
		all = append(all, t.took)
		if !slices.ContainsFunc(w.faults, func(b *fault) bool { return b != t.after && b.isNear(t.after.at, near) }) {
			alone = append(alone, t.took)
		}
	}
	slices.Sort(all)
	slices.Sort(alone)
	return all, alone
}

// isNear reports whether a fault was under way near a moment.
func (b *fault) isNear(at time.Time, near time.Duration) bool {
	end := b.end
	if end.IsZero() {
		end = b.at
	}
	return b.at.Add(-near).Before(at) && end.Add(near).After(at)
}

// quantile returns a quantile of sorted times.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)].Round(time.Millisecond)
}
