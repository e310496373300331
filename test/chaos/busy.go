package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"
)

// heldRequests is the requests that are not answered yet.
type heldRequests struct {
	open    chan struct{} // closed: all are answered
	waiting int
	// by names the nodes that have one held request each; nil: all requests are held.
	by map[string]bool
}

// holdAll holds all requests until release.
func (p *provider) holdAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held.open, p.held.by = make(chan struct{}), nil
}

// holdOne holds one request of each node until release.
func (p *provider) holdOne() {
	p.holdAll()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held.by = map[string]bool{}
}

// nodesHeld lists the nodes that have a held request.
func (p *provider) nodesHeld() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return sortedKeys(p.held.by)
}

func (p *provider) releaseAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.held.open)
}

// nodeURL returns the URL at which a node calls the double: it names the node.
func (p *provider) nodeURL(node string) string { return p.URL + "/" + node }

// nodeOf returns the node that made a request.
func nodeOf(r *http.Request) string {
	node, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	return node
}

// waitHeld holds a request if it is to be held. It returns when the client is gone.
func (p *provider) waitHeld(r *http.Request) {
	p.mu.Lock()
	open, node := p.held.open, nodeOf(r)
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

func (p *provider) countWaiting() int {
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
	t.p.holdAll()
	t.load.enough = true
	t.load.beginRuns()
	random := rand.New(rand.NewPCG(t.o.seed, 0))
	if err := waitUntil(busyPatience, func() bool { return t.p.countWaiting() >= t.o.busy }); err != nil {
		t.found.add("of %d agents %d became busy: %v", t.o.busy, t.p.countWaiting(), err)
	}
	fmt.Printf("%d agents are busy after %v\n", t.p.countWaiting(), time.Since(t.began).Round(time.Second))
	b := &fault{kind: killed, no: 1, ask: true}
	if t.o.drains > 0 {
		b.kind = drained
	}
	m := t.nodes.pickVictim(random)
	b.node, b.at = m.name, time.Now()
	t.faults = append(t.faults, b)
	t.nodes.injectFault(m, b)
	agents, supers := t.observer.countOrphaned()
	fmt.Printf("%s had %d agents and %d supervisors\n", b.node, agents, supers)
	if b.kind == drained {
		time.Sleep(thinking)
	} else if err := waitUntil(t.o.ttl+busyPatience, func() bool { a, s := t.observer.countOrphaned(); return a+s == 0 }); err != nil {
		agents, supers = t.observer.countOrphaned()
		t.found.add("%d agents and %d supervisors of a dead node are nowhere: %v", agents, supers, err)
	}
	t.p.releaseAll()
	t.nodes.awaitFaults()
	t.load.awaitEnd()
	t.checkIndex()
}

// waitUntil waits until a condition holds.
func waitUntil(patience time.Duration, is func() bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for !is() {
		if err := sleepFor(ctx, poll); err != nil {
			return err
		}
	}
	return nil
}

// countOrphaned counts the actors of failed nodes that have no event from another node yet.
func (w *observer) countOrphaned() (agents, supers int) {
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
