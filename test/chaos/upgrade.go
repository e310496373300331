package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/jetstream"
	"github.com/troupe-run/troupe/supervisor"
)

// upgradeRuns are runs that end between two steps of an upgrade, and upgradeHeld
// those that are in a model call when a node comes that is too old for them.
const (
	upgradeRuns = 10
	upgradeHeld = 24
)

// timeSpan is when nodes of one kind were alone.
type timeSpan struct{ from, to time.Time }

// rollingUpgrade is the scenario in which nodes of two builds run side by side.
type rollingUpgrade struct{ *testCluster }

// run starts nodes of two builds side by side: it stops the old ones in order and replaces them
// by newer ones, while runs continue. Then an old one comes back, and a newer one dies: the old
// one gets logs that it does not know.
func (t *rollingUpgrade) run() {
	random := rand.New(rand.NewPCG(t.o.seed, 0))
	old := slices.Clone(t.nodes.list)
	t.load.beginRuns()
	var mixed, young timeSpan
	refused := &refusalCount{nodes: map[string]int{}}
	stop, err := t.client.Watch(refused.noteEvent)
	if err != nil {
		t.found.add("%v", err)
		return
	}
	defer stop()
	step := func(what string, do func() error) bool {
		if err == nil {
			err = do()
		}
		if err != nil {
			t.found.add("upgrade: %s: %v", what, err)
		}
		return err == nil
	}
	step("runs on old nodes", func() error { return t.awaitRuns(upgradeRuns) })
	t.nodes.bin = t.o.younger
	step("a younger node beside the old ones", t.nodes.startNode)
	mixed.from = time.Now()
	step("runs on both", func() error { return t.awaitRuns(upgradeRuns) })
	for _, m := range old[1:] {
		t.replaceOld(m)
	}
	t.nodes.awaitFaults()
	step("runs while one is old", func() error { return t.awaitRuns(upgradeRuns) })
	mixed.to = time.Now()
	t.replaceOld(old[0])
	t.nodes.awaitFaults()
	young.from = time.Now()
	step("runs on younger nodes", func() error { return t.awaitRuns(upgradeRuns) })
	t.p.holdAll()
	step("runs in a model call", func() error {
		return waitUntil(busyPatience, func() bool { return t.p.countWaiting() >= t.o.atOnce })
	})
	young.to = time.Now()
	t.nodes.bin = t.o.node
	step("an old node comes back", t.nodes.startNode)
	late := t.nodes.list[len(t.nodes.list)-1]
	t.nodes.setReady(late, false) // the fault must not hit it
	t.nodes.bin = t.o.younger
	m := t.nodes.pickVictim(random)
	b := &fault{no: len(t.faults) + 1, kind: killed, node: m.name, at: time.Now()}
	t.faults = append(t.faults, b)
	t.nodes.injectFault(m, b)
	step("the old node refuses what it does not know", func() error {
		return waitUntil(t.o.scalePatience(busyPatience), func() bool { return refused.countOf(late.name) > 0 })
	})
	t.p.releaseAll()
	t.nodes.awaitFaults()
	t.load.awaitEnd()
	t.nodes.setReady(late, true)
	t.checkIndex()
	t.judgeRules(mixed, young, refused, late.name)
}

// replaceOld stops a node in order; a newer one replaces it.
func (t *rollingUpgrade) replaceOld(m *nodeProcess) {
	b := &fault{no: len(t.faults) + 1, kind: drained, node: m.name, at: time.Now(), ask: true}
	t.faults = append(t.faults, b)
	t.nodes.injectFault(m, b)
}

// awaitRuns waits until some more runs have ended.
func (t *rollingUpgrade) awaitRuns(n int) error {
	n += t.load.countEnded()
	return waitUntil(busyPatience, func() bool { return t.load.countEnded() >= n })
}

// refusalCount count the logs that nodes refused because they are too old for them.
type refusalCount struct {
	mu    sync.Mutex
	nodes map[string]int
	why   string
}

func (r *refusalCount) noteEvent(e client.Event) {
	text := string(e.Data)
	if e.Kind != event.KindWarningRaised || !strings.Contains(text, "too old for this log") {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.nodes[e.Node]++
	r.why = text
}

func (r *refusalCount) countOf(node string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.nodes[node]
}

// judgeRules checks under which rules runs began while an old node lived and when none did, and
// whether an old one wrote anything but its claim into a log under newer rules.
func (t *rollingUpgrade) judgeRules(mixed, young timeSpan, refused *refusalCount, late string) {
	var elders []string
	for _, m := range t.nodes.list {
		if m.bin == t.o.node {
			elders = append(elders, m.name)
		}
	}
	var origins []runOrigin
	err := t.withPost(func(post *jetstream.Post) error {
		for _, r := range t.load.runs {
			o, err := t.readOrigin(post, r.id, elders)
			if err != nil {
				return err
			}
			origins = append(origins, o)
		}
		return nil
	})
	if err != nil {
		t.found.add("the logs: %v", err)
	}
	text := t.judgeOrigins(origins, mixed, young)
	fmt.Printf("%s\n%s came back and refused %d logs; the last: %s\n", text, late, refused.countOf(late), refused.why)
}

// runOrigin is under which rules a run began, when, and how many entries that are no claims
// old nodes wrote into its logs.
type runOrigin struct {
	run   string
	rules int
	began time.Time
	old   int
}

// judgeOrigins checks the runs against the nodes that lived when they began.
func (t *rollingUpgrade) judgeOrigins(origins []runOrigin, mixed, young timeSpan) string {
	under := map[int]int{}
	beside, newer, alone, wrote := 0, 0, 0, 0
	for _, o := range origins {
		under[o.rules]++
		switch {
		case o.began.After(mixed.from) && o.began.Before(mixed.to):
			beside++
			if o.rules > spec.Rules {
				newer++
				t.found.addOf(o.run, "run %s began under rules %d while an old node lived", o.run, o.rules)
			}
		case o.began.After(young.from) && o.began.Before(young.to) && o.rules > spec.Rules:
			alone++
		}
		if o.rules > spec.Rules && o.old > 0 {
			wrote += o.old
			t.found.addOf(o.run, "run %s is under rules %d, and an old node wrote %d entries of its own into its logs", o.run, o.rules, o.old)
		}
	}
	if beside == 0 || alone == 0 {
		t.found.add("of the runs %d began beside old nodes, and %d under newer rules without", beside, alone)
	}
	return fmt.Sprintf("rules of the runs: %v; %d began while old and younger nodes lived, %d of them under the newer ones; %d began under the newer ones when no old node was left; old nodes wrote %d entries into logs under newer rules, beside their claims",
		under, beside, newer, alone, wrote)
}

// readOrigin reads the origin of a run; nodes are the old ones.
func (t *rollingUpgrade) readOrigin(post *jetstream.Post, run string, nodes []string) (o runOrigin, err error) {
	o.run = run
	of := map[string]string{} // node by activation
	err = post.ReadRun(context.Background(), run, func(m mailbox.Message) error {
		e, err := mailbox.Decode(m.Data)
		if err != nil {
			return err
		}
		for _, item := range e.Items {
			body := func(into any) error { return mailbox.Unmarshal(item.Body, into) }
			fact, ok, err := supervisor.Decode(item.Kind, body)
			if opened, is := fact.(supervisor.Opened); ok && err == nil && is {
				o.rules, o.began = opened.Rules, time.UnixMilli(m.At)
			}
		}
		claim := false
		for _, fact := range (storedLog{m.To, m.At, e}).decodeFacts() {
			if r, is := fact.(agent.Resumed); is && e.From == m.To {
				of[e.Start], claim = r.Node, true
			}
		}
		if e.From == m.To && !claim && slices.Contains(nodes, of[e.Start]) {
			o.old++
		}
		return nil
	})
	return o, err
}

// buildYounger builds the node of an upgrade: the same commit, with rules that are
// newer by one.
func (o *options) buildYounger(dir string) (err error) {
	o.younger, err = givenOrBuilt(o.younger, dir, "troupe-node-younger", "node", "-tags", "chaos,younger")
	return err
}
