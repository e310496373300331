package main

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
)

// expectation records what the nodes must report while there is no room.
type expectation struct {
	mu   sync.Mutex
	from time.Time // when the room was gone
	// told is when each node reported since then that it cannot write, and back when it reported
	// that it can again.
	told, back map[string]time.Time
	cannot     map[string]bool // the last report of each
}

func newExpectation() *expectation {
	return &expectation{told: map[string]time.Time{}, back: map[string]time.Time{}, cannot: map[string]bool{}}
}

// noteEvent takes the events of nodes.
func (w *expectation) noteEvent(e client.Event) { w.noteReport(e.Node, e.Kind, time.Now()) }

func (w *expectation) noteReport(node, kind string, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch kind {
	case event.KindLogsUnavailable:
		w.cannot[node] = true
		if w.told[node].IsZero() {
			w.told[node] = at
		}
	case event.KindLogsAvailable:
		w.cannot[node] = false
		w.back[node] = at
	}
}

// discardEarlier discards the reports from before the room ran out: a node that already cannot write
// counts as reporting now.
func (w *expectation) discardEarlier(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.from, w.told, w.back = now, map[string]time.Time{}, map[string]time.Time{}
	for node, cannot := range w.cannot {
		if cannot {
			w.told[node] = now
		}
	}
}

// allReported reports whether every node has reported.
func (w *expectation) allReported(said map[string]time.Time, nodes []string) bool {
	return len(w.listSilent(said, nodes)) == 0
}

// listSilent lists the nodes that have not.
func (w *expectation) listSilent(said map[string]time.Time, nodes []string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(nodes), func(n string) bool { return !said[n].IsZero() })
}

// stillness is what happened while there was no room.
type stillness struct {
	waiting      []string // nodes that had something to write all the time
	tools, calls int      // begun after everything had stopped
}

// listProblems lists the problems, and returns how long the slowest node took to report that it
// cannot write.
func (w *expectation) listProblems(s stillness) (last time.Duration, bad []string) {
	if silent := w.listSilent(w.told, s.waiting); len(silent) > 0 {
		bad = append(bad, fmt.Sprintf("%v have waited to write for %v, and never said that they cannot", silent, toldWithin))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, node := range s.waiting {
		last = max(last, w.told[node].Sub(w.from))
	}
	if last > toldWithin {
		bad = append(bad, fmt.Sprintf("a node said that it cannot write after %v", last))
	}
	for _, node := range s.waiting {
		if !w.back[node].IsZero() {
			bad = append(bad, fmt.Sprintf("%s said that it can write again, and there was no room", node))
		}
	}
	if s.tools > 0 {
		bad = append(bad, fmt.Sprintf("%d tools were begun while there was no room", s.tools))
	}
	if s.calls > 0 {
		bad = append(bad, fmt.Sprintf("%d model calls were begun while there was no room", s.calls))
	}
	return last, bad
}
