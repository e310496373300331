package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"
)

// held is the requests that are not answered yet.
type held struct {
	open    chan struct{} // closed: all are answered
	waiting int
	// by names the nodes that have one held request each; nil: all requests are held.
	by map[string]bool
}

// hold holds all requests until release.
func (p *provider) hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held.open, p.held.by = make(chan struct{}), nil
}

// holdOne holds one request of each node until release.
func (p *provider) holdOne() {
	p.hold()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held.by = map[string]bool{}
}

// kept lists the nodes that have a held request.
func (p *provider) kept() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return sorted(p.held.by)
}

func (p *provider) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.held.open)
}

// door returns the URL at which a node calls the double: it names the node.
func (p *provider) door(node string) string { return p.URL + "/" + node }

// asker returns the node that made a request.
func asker(r *http.Request) string {
	node, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	return node
}

// wait holds a request if it is to be held. It returns when the client is gone.
func (p *provider) wait(r *http.Request) {
	p.mu.Lock()
	open, node := p.held.open, asker(r)
	if p.held.by != nil && p.held.by[node] {
		open = nil
	} else if p.held.by != nil {
		p.held.by[node] = true
	}
	p.held.waiting++
	p.mu.Unlock()
	if open != nil {
		select {
		case <-open:
		case <-r.Context().Done():
			p.mu.Lock()
			delete(p.held.by, node)
			p.mu.Unlock()
		}
	}
	p.mu.Lock()
	p.held.waiting--
	p.mu.Unlock()
}

func (p *provider) waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held.waiting
}

const (
	// busyPatience is how long it may take until all agents are busy and, beyond the TTL,
	// until all actors of a node continue elsewhere.
	busyPatience = 5 * time.Minute
	// thinking is how long the models of a drained node still take.
	thinking = 2 * time.Second
)

// busyNode is the scenario in which a node dies or leaves while all agents are in a model call.
type busyNode struct{ *testCluster }

// run makes one node die or leave while all agents are in a model call, each in its own
// run.
func (t *busyNode) run() {
	t.p.hold()
	t.load.enough = true
	t.load.begin()
	random := rand.New(rand.NewPCG(t.o.seed, 0))
	if err := waitUntil(busyPatience, func() bool { return t.p.waiting() >= t.o.busy }); err != nil {
		t.found.add("of %d agents %d became busy: %v", t.o.busy, t.p.waiting(), err)
	}
	fmt.Printf("%d agents are busy after %v\n", t.p.waiting(), time.Since(t.began).Round(time.Second))
	b := &fault{kind: killed, no: 1, ask: true}
	if t.o.drains > 0 {
		b.kind = drained
	}
	m := t.nodes.victim(random)
	b.node, b.at = m.name, time.Now()
	t.faults = append(t.faults, b)
	t.nodes.inject(m, b)
	agents, supers := t.observer.orphaned()
	fmt.Printf("%s had %d agents and %d supervisors\n", b.node, agents, supers)
	if b.kind == drained {
		time.Sleep(thinking)
	} else if err := waitUntil(t.o.ttl+busyPatience, func() bool { a, s := t.observer.orphaned(); return a+s == 0 }); err != nil {
		agents, supers = t.observer.orphaned()
		t.found.add("%d agents and %d supervisors of a dead node are nowhere: %v", agents, supers, err)
	}
	t.p.release()
	t.nodes.settle()
	t.load.finish()
	t.checkIndex()
}

// waitUntil waits until a condition holds.
func waitUntil(patience time.Duration, is func() bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for !is() {
		if err := pause(ctx, poll); err != nil {
			return err
		}
	}
	return nil
}

// orphaned counts the actors of failed nodes that have no event from another node yet.
func (w *observer) orphaned() (agents, supers int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for at := range w.orphans {
		if agentOf(at) == "super" {
			supers++
		} else {
			agents++
		}
	}
	return agents, supers
}
