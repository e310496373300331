package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/troupe-run/troupe/client"
)

// witness sees which node acts for which actor, by its events, and so how long
// after a death another one does.
type witness struct {
	mu sync.Mutex
	// acts is who acted last, by run and the address of the actor.
	acts map[string]map[string]string
	// orphans are the actors of a node that was struck.
	orphans map[string]*blow
	takes   []take
	blows   []*blow
	// frozen are actors whose fate a patient person waits for, and until when; zero:
	// their node is still frozen.
	frozen map[string]time.Time
	// told is what was seen of runs that go on, slowest of the one that took longest.
	told    map[string][]sight
	slowest []sight
}

// sight is one event.
type sight struct {
	at               time.Time
	addr, node, kind string
}

// take is one actor taken over.
type take struct {
	after *blow
	took  time.Duration
}

// see takes one event.
func (w *witness) see(e client.Event) {
	at, _, _ := strings.Cut(e.ID, "#")
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tell(e, at)
	if b := w.orphans[at]; b != nil && b.node != e.Node {
		w.takes = append(w.takes, take{b, time.Since(b.at)})
		delete(w.orphans, at)
	}
	if w.acts[e.Run] == nil {
		w.acts[e.Run] = map[string]string{}
	}
	switch e.Kind {
	case "run.finished":
		delete(w.acts, e.Run)
	case "agent.finished":
		delete(w.acts[e.Run], at)
	default:
		w.acts[e.Run][at] = e.Node
	}
}

// tell keeps what was seen of a run, for the one that took longest.
func (w *witness) tell(e client.Event, at string) {
	list := append(w.told[e.Run], sight{time.Now(), at, e.Node, e.Kind})
	w.told[e.Run] = list
	if e.Kind != "run.finished" {
		return
	}
	delete(w.told, e.Run)
	if long(list) > long(w.slowest) {
		w.slowest = list
	}
}

func long(list []sight) time.Duration {
	if len(list) == 0 {
		return 0
	}
	return list[len(list)-1].at.Sub(list[0].at)
}

// write writes what was seen of the run that took longest.
func (w *witness) write(path string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var text strings.Builder
	for _, s := range w.slowest {
		fmt.Fprintf(&text, "%8v %-5s %s %s\n", s.at.Sub(w.slowest[0].at).Round(time.Millisecond), s.node, s.addr, s.kind)
	}
	return os.WriteFile(path, []byte(text.String()), 0o644)
}

// struck notes that something is about to be done to a node.
func (w *witness) struck(b *blow) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, actors := range w.acts {
		for at, node := range actors {
			if node == b.node {
				w.orphans[at] = b
			}
		}
	}
	w.blows = append(w.blows, b)
}

// wait has the person wait for what becomes of an actor, until a moment.
func (w *witness) wait(at string, until time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.frozen == nil {
		w.frozen = map[string]time.Time{}
	}
	w.frozen[at] = until
}

// waits reports whether the person waits.
func (w *witness) waits(at string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	until, ok := w.frozen[at]
	return ok && (until.IsZero() || time.Now().Before(until))
}

// over notes that what was done to a node is over.
func (w *witness) over(b *blow) {
	w.mu.Lock()
	defer w.mu.Unlock()
	b.end = time.Now()
}

// takeovers are the times of all after a kind of blow, and of those that no other
// blow was near: only these tell how long a takeover takes.
func (w *witness) takeovers(kind string, near time.Duration) (all, alone []time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.takes {
		if t.after.kind != kind {
			continue
		}
		all = append(all, t.took)
		if !slices.ContainsFunc(w.blows, func(b *blow) bool { return b != t.after && b.touches(t.after.at, near) }) {
			alone = append(alone, t.took)
		}
	}
	slices.Sort(all)
	slices.Sort(alone)
	return all, alone
}

// touches reports whether a blow was under way near a moment.
func (b *blow) touches(at time.Time, near time.Duration) bool {
	end := b.end
	if end.IsZero() {
		end = b.at
	}
	return b.at.Add(-near).Before(at) && end.Add(near).After(at)
}

// part is a quantile of sorted times.
func part(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)].Round(time.Millisecond)
}
