package main

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/troupe-run/troupe/client"
)

// want of room is what the witnesses of a play without room saw.
type want struct {
	mu   sync.Mutex
	from time.Time // when the room was gone
	// told is when each node said that it cannot write, since then, and back when it said
	// that it can again.
	told, back map[string]time.Time
	cannot     map[string]bool // what each said last
}

func newWant() *want {
	return &want{told: map[string]time.Time{}, back: map[string]time.Time{}, cannot: map[string]bool{}}
}

// see takes the events of nodes.
func (w *want) see(e client.Event) { w.said(e.Node, e.Kind, time.Now()) }

func (w *want) said(node, kind string, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch kind {
	case "journal.unavailable":
		w.cannot[node] = true
		if w.told[node].IsZero() {
			w.told[node] = at
		}
	case "journal.available":
		w.cannot[node] = false
		w.back[node] = at
	}
}

// begin forgets what was said while there was room: who cannot write already says it
// now.
func (w *want) begin(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.from, w.told, w.back = now, map[string]time.Time{}, map[string]time.Time{}
	for node, cannot := range w.cannot {
		if cannot {
			w.told[node] = now
		}
	}
}

// all reports whether every node has said something.
func (w *want) all(said map[string]time.Time, nodes []string) bool {
	return len(w.silent(said, nodes)) == 0
}

// silent are the nodes that have not.
func (w *want) silent(said map[string]time.Time, nodes []string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(nodes), func(n string) bool { return !said[n].IsZero() })
}

// stillness is what went on while there was no room.
type stillness struct {
	waiting      []string // nodes that had something to write all the time
	tools, calls int      // that were begun, once all stood still
}

// judge says what is wrong with that, and how long the last of the nodes took to say
// that it cannot write.
func (w *want) judge(s stillness) (last time.Duration, bad []string) {
	if silent := w.silent(w.told, s.waiting); len(silent) > 0 {
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
