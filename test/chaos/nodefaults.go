package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/troupe-run/troupe/internal/failpoint"
)

// nodeFaults is the scenario in which nodes are killed, frozen and drained in a random
// order while runs continue.
type nodeFaults struct {
	*testCluster
	frozen int // nodes that were to be frozen at a place
	missed int // traps that no actor reached, since the last one that an actor sprang
}

// run injects faults while runs continue, and waits for the end of all runs.
func (t *nodeFaults) run() {
	fmt.Printf("seed %d: %d nodes, TTL %v, %d kills, %d stops, %d drains over %d runs\n", t.o.seed, t.o.nodes, t.o.ttl, t.o.kills, t.o.stops, t.o.drains, t.o.runs)
	fmt.Println("  # |       at | fault  | node   | runs | what it came to")
	t.load.beginRuns()
	t.servers.beginFaults()
	random := rand.New(rand.NewPCG(t.o.seed, 0))
	for next := t.shuffleKinds(random); ; {
		kind, ok := next()
		if !ok {
			break
		}
		time.Sleep(t.o.gap/4 + time.Duration(random.Int64N(int64(t.o.gap*3/2))))
		b := &fault{kind: kind, no: len(t.faults) + 1, frozen: t.o.ttl + time.Second + time.Duration(random.Int64N(int64(t.o.ttl))),
			ask: random.IntN(2) == 0, place: t.pickPlace(kind, random)}
		victim, err := t.pickNode(random, b)
		if err != nil {
			t.found.add("%v", err)
			break
		}
		t.faults = append(t.faults, b)
		t.nodes.injectFault(victim, b)
	}
	t.nodes.awaitFaults()
	t.servers.awaitOver()
	t.load.awaitEnd()
	t.checkIndex()
}

// pickNode picks the node of a fault. A fault at a named place has happened when pickNode returns.
func (t *nodeFaults) pickNode(random *rand.Rand, b *fault) (*nodeProcess, error) {
	if b.place != "" {
		return t.injectAtPlace(random, b)
	}
	m := t.nodes.pickVictim(random)
	b.node, b.at = m.name, time.Now()
	return m, nil
}

// shuffleKinds returns the kinds of faults in a random order, once or, with -for, repeatedly
// until the time is over.
func (t *nodeFaults) shuffleKinds(random *rand.Rand) func() (string, bool) {
	var all []string
	for _, k := range []struct {
		kind string
		n    int
	}{{killed, t.o.kills}, {stopped, t.o.stops}, {drained, t.o.drains}, {pointed, t.o.points}, {zombie, len(zombies) * t.o.zombies}} {
		for range k.n {
			all = append(all, k.kind)
		}
	}
	order, i := []int(nil), 0
	return func() (string, bool) {
		if i == len(order) && len(all) > 0 && (order == nil || time.Since(t.began) < t.o.length) {
			order, i = random.Perm(len(all)), 0
		}
		if i == len(order) || t.o.length > 0 && time.Since(t.began) > t.o.length {
			return "", false
		}
		i++
		return all[order[i-1]], true
	}
}

// pickPlace picks a named place in the code for a kind of fault; "" for the others.
func (t *nodeFaults) pickPlace(kind string, random *rand.Rand) string {
	switch kind {
	case pointed:
		return deaths[random.IntN(len(deaths))]
	case zombie:
		group := zombies[t.frozen%len(zombies)]
		t.frozen++
		return group.places[random.IntN(len(group.places))]
	}
	return ""
}

// injectAtPlace injects a fault at a named place: it happens when the node gets there.
func (t *nodeFaults) injectAtPlace(random *rand.Rand, b *fault) (*nodeProcess, error) {
	action := failpoint.Kill
	if b.kind == zombie {
		action = failpoint.Stop
	}
	for {
		m := t.nodes.pickVictim(random)
		t.nodes.setReady(m, false)
		text, err := t.files.springTrap(m.name, b.place, action)
		if errors.Is(err, errNobody) {
			t.missed++
			t.nodes.setReady(m, true)
			if t.missed == len(deaths) {
				return nil, fmt.Errorf("%w at %s", err, b.place)
			}
			b.place = b.otherPlace(random)
			continue
		}
		t.missed = 0
		b.node, b.at = m.name, time.Now()
		b.caught, b.call, b.activation = caughtAt(b.place, text)
		return m, err
	}
}
