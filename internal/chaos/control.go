package main

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A control is a play in which what its judge looks for is true: it must find that, or
// it could see nothing else either.

// finds is what the judge of a play must find in its control, in its own words.
func (o *options) finds() []string {
	switch {
	case o.full == fullDisk: // no room is taken
		return []string{"never said that they cannot", "model calls were begun while there was no room", "tools were begun while there was no room"}
	case o.full != "":
		return []string{"the runs went on though the streams are full"}
	case o.slow > 0: // a node is frozen for longer than its leases last
		return []string{"leases ended, and everybody lives"}
	case o.bombs > 0: // each bomb may have one agent and one child more than the judge knows
		sh := shells[1%len(shells)]
		return []string{fmt.Sprintf("bomb 1: %d agents of %d, %d children of %d", sh.agents+1, sh.agents, sh.children+1, sh.children)}
	case o.watchers > 0: // models are slow while somebody looks on, and nobody reads
		return []string{fmt.Sprintf("before %d watchers of whom 0 read", o.watchers/2), "the watchers read 0 bytes"}
	case o.upgrade: // the old nodes are young
		return []string{"while an old node lived", "an old node wrote"}
	}
	return nil
}

// sabotage makes a play its own control, if it is asked for and the play has one. That of
// the others is a tool that lies (see cast).
func (o *options) sabotage() {
	if find := o.finds(); o.control && find != nil {
		o.broken, o.control = true, false
	}
}

// blind says what the control of a play should have found, and did not.
func (p *problems) blind(find []string) error {
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

// brokenPatience is how long a control waits for what must not come about in it.
const brokenPatience = 20 * time.Second

// patience is how long something is waited for, if this is no control.
func (o options) patience(d time.Duration) time.Duration {
	if o.broken {
		return brokenPatience
	}
	return d
}

// more is 1 in a control: what may be is one more than the judge knows.
func (o options) more() int {
	if o.broken {
		return 1
	}
	return 0
}

// slowThought is how much longer models think in the control of watchers, while somebody
// looks on.
const slowThought = time.Second

// faint freezes a node for longer than its leases last, in the control of a slow disk.
func (t *theatre) faint() {
	m := t.nodes.list[len(t.nodes.list)-1]
	t.nodes.signal(m, syscall.SIGSTOP)
	time.Sleep(3 * t.o.ttl)
	t.nodes.signal(m, syscall.SIGCONT)
}
