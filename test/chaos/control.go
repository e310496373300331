package main

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A control is a scenario that breaks what its judge checks: the judge must report it,
// or the judge could not find anything else either.

// expectedProblems lists the texts that the judge of a scenario must report in its control.
func (o *options) expectedProblems() []string {
	switch {
	case o.full == fullDisk: // no room is taken
		return []string{"never said that they cannot", "model calls were begun while there was no room", "tools were begun while there was no room"}
	case o.full != "":
		return []string{"the runs went on though the streams are full"}
	case o.slow > 0: // a node is frozen for longer than its leases last
		return []string{"leases ended, and everybody lives"}
	case o.storms > 0: // each storm may have one agent and one child more than the judge knows
		sh := stormShapes[1%len(stormShapes)]
		return []string{fmt.Sprintf("spawn storm 1: %d agents of %d, %d children of %d", sh.agents+1, sh.agents, sh.children+1, sh.children)}
	case o.watchers > 0: // models are slow while watchers are connected, and none reads
		return []string{fmt.Sprintf("before %d stopped watchers", o.watchers), "the readers watchers read 0 bytes", "the pages watchers read 0 bytes"}
	}
	return nil
}

// breakOnPurpose makes a scenario its own control, if a control is asked for and the scenario
// has one. For the others the control is a tool that is wrongly declared idempotent (see writeAgents).
func (o *options) breakOnPurpose() {
	if find := o.expectedProblems(); o.control && find != nil {
		o.broken, o.control = true, false
	}
}

// checkControl returns an error if the control of a scenario did not find what it must.
func (p *problems) checkControl(find []string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, text := range find {
		if !slices.ContainsFunc(p.list, func(found string) bool { return strings.Contains(found, text) }) {
			return fmt.Errorf("the control did not find %q: this judge cannot see it", text)
		}
	}
	fmt.Printf("the control found what it must: %q\n", find)
	return nil
}

// brokenPatience is how long a control waits for what must not happen in it.
const brokenPatience = 20 * time.Second

// scalePatience returns d, or brokenPatience in a control.
func (o options) scalePatience(d time.Duration) time.Duration {
	if o.broken {
		return brokenPatience
	}
	return d
}

// extraAllowed is 1 in a control: each cap is one higher than the judge knows.
func (o options) extraAllowed() int {
	if o.broken {
		return 1
	}
	return 0
}

// slowThought is how much longer models take in the control of watchers, while watchers are
// connected.
const slowThought = time.Second

// freezeOne freezes a node for longer than its leases last, in the control of a slow disk.
func (t *slowDisk) freezeOne() {
	m := t.nodes.list[len(t.nodes.list)-1]
	t.nodes.signalNode(m, syscall.SIGSTOP)
	time.Sleep(3 * t.o.ttl)
	t.nodes.signalNode(m, syscall.SIGCONT)
}
