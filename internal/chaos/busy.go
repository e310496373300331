package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"
)

// held keeps requests from being answered.
type held struct {
	open    chan struct{} // closed: all are answered
	waiting int
	// by are the nodes of which one request is held each; nil: all are.
	by map[string]bool
}

// hold keeps all requests from being answered until release.
func (p *provider) hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held.open, p.held.by = make(chan struct{}), nil
}

// holdOne keeps one request of each node from being answered until release.
func (p *provider) holdOne() {
	p.hold()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held.by = map[string]bool{}
}

// kept are the nodes of which one request is held.
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

// door is where a node asks the double: its requests name it.
func (p *provider) door(node string) string { return p.URL + "/" + node }

// asker is the node that made a request.
func asker(r *http.Request) string {
	node, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	return node
}

// wait is where a request is held, if any is. It is over when the client has gone.
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
	// busyPatience is how long it may take until all agents are busy, and until all
	// that a node had go on elsewhere, beyond the TTL.
	busyPatience = 5 * time.Minute
	// thinking is how long the models of a node that is drained still think.
	thinking = 2 * time.Second
)

// playBusy makes one node die or leave while all agents are in a model call, each
// in a run of its own.
func (t *theatre) playBusy() {
	t.p.hold()
	t.load.enough = true
	t.load.begin()
	random := rand.New(rand.NewPCG(t.o.seed, 0))
	if err := t.until(busyPatience, func() bool { return t.p.waiting() >= t.o.busy }); err != nil {
		t.found.add("of %d agents %d became busy: %v", t.o.busy, t.p.waiting(), err)
	}
	fmt.Printf("%d agents are busy after %v\n", t.p.waiting(), time.Since(t.began).Round(time.Second))
	b := &blow{kind: killed, no: 1, ask: true}
	if t.o.drains > 0 {
		b.kind = drained
	}
	m := t.nodes.victim(random)
	b.node, b.at = m.name, time.Now()
	t.blows = append(t.blows, b)
	t.nodes.deal(m, b)
	agents, supers := t.witness.orphaned()
	fmt.Printf("%s had %d agents and %d supervisors\n", b.node, agents, supers)
	if b.kind == drained {
		time.Sleep(thinking)
	} else if err := t.until(t.o.ttl+busyPatience, func() bool { a, s := t.witness.orphaned(); return a+s == 0 }); err != nil {
		agents, supers = t.witness.orphaned()
		t.found.add("%d agents and %d supervisors of a dead node are nowhere: %v", agents, supers, err)
	}
	t.p.release()
	t.nodes.settle()
	t.load.finish()
	t.indexed()
}

// until waits for something to come about.
func (t *theatre) until(patience time.Duration, is func() bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for !is() {
		if err := pause(ctx, poll); err != nil {
			return err
		}
	}
	return nil
}

// orphaned is how many actors of struck nodes show no sign of life elsewhere yet.
func (w *witness) orphaned() (agents, supers int) {
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
