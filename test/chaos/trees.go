package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/logstore/jetstream"
)

// A tree of agents: each but the leaves delegates to four.
const (
	treeDeep   = 3 // levels below the root
	treeWide   = 4
	treeAgents = 1 + treeWide + treeWide*treeWide + treeWide*treeWide*treeWide
	treeLeaves = treeWide * treeWide * treeWide
	// All leaves think at once, and each may ask for 64 tool calls.
	treeTokens = 40_000_000
	treeCalls  = 40_000
	// treePatience is how long it may take until the whole tree is at work, and until
	// a node that comes back has nothing left to report.
	treePatience = 2 * time.Minute
)

// forker is the agent of trees.
const forker = `---
name: forker
description: delegates
tools: delegate
x-troupe:
  delegates: [forker]
---
Delegate the task.
`

// forks is the number of levels below the agent that asks: its task states it.
var forks = regexp.MustCompile(`fork ([0-9]) for ` + tag)

// answerTree answers an agent of a tree that has to delegate. A leaf gets no answer yet.
func (p *provider) answerTree(w http.ResponseWriter, body []byte, run, node string) bool {
	found := forks.FindSubmatch(body)
	if found == nil {
		return false
	}
	p.mu.Lock()
	p.begun = append(p.begun, treeCall{time.Now(), node})
	p.mu.Unlock()
	level, err := strconv.Atoi(string(found[1]))
	if err != nil || level == 0 {
		return false
	}
	tasks := make([]string, treeWide)
	for i := range tasks {
		tasks[i] = fmt.Sprintf(`{"agent":"forker","task":"fork %d for %s%s"}`, level-1, tag, run)
	}
	p.streamDelegation(w, tasks)
	return true
}

// treeCall is a model call of a tree, by the clock of the double.
type treeCall struct {
	at   time.Time
	node string
}

// callsSince counts the model calls of trees that nodes began after a moment that each of
// them has.
func (p *provider) callsSince(moment func(node string) time.Time) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, c := range p.begun {
		if c.at.After(moment(c.node)) {
			n++
		}
	}
	return n
}

// callsAfter is how many model calls of trees began after a moment.
func (p *provider) callsAfter(t time.Time) int {
	return p.callsSince(func(string) time.Time { return t })
}

// treeFaults are the faults of a node before a tree is canceled: none, its connections are
// cut, it is frozen, or it dies.
var treeFaults = []string{"", cutNode, stopped, killed}

// treeCancels is the scenario in which trees of agents are canceled.
type treeCancels struct{ *testCluster }

// run cancels trees over all nodes, while they grow or while their leaves are in a model
// call: some of them with one node cut off, frozen or dead.
func (t *treeCancels) run() {
	for name, text := range map[string]string{t.files.agentFile("forker"): forker, t.files.ledger: ""} { // no effects
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.found.add("%v", err)
			return
		}
	}
	random := rand.New(rand.NewPCG(t.o.seed, 0))
	fmt.Printf("seed %d: trees of %d agents on %d nodes, TTL %v\n", t.o.seed, treeAgents, t.o.nodes, t.o.ttl)
	for n := range t.o.trees {
		for _, kind := range treeFaults {
			for _, grown := range []bool{true, false} {
				if err := t.runOne(n+1, kind, grown, random); err != nil {
					t.found.add("tree %d: %v", n+1, err)
					return
				}
			}
		}
	}
}

// injectFault injects the fault of a tree.
func (t *treeCancels) injectFault(kind string, random *rand.Rand) *fault {
	if kind == "" {
		return nil
	}
	m := t.nodes.pickVictim(random)
	if kind == cutNode && t.servers == nil { // there are no wires
		kind = stopped
	}
	b := &fault{no: len(t.faults) + 1, kind: kind, node: m.name, at: time.Now(), frozen: t.o.ttl*2 + 2*time.Second}
	t.faults = append(t.faults, b)
	if kind == cutNode {
		t.servers.severNode(m, b)
	} else {
		t.nodes.injectFault(m, b)
	}
	return b
}

// runOne lets one tree grow, cancels it, and checks which agents stopped and what began
// later.
func (t *treeCancels) runOne(no int, kind string, grown bool, random *rand.Rand) error {
	id := client.NewID()
	ctx, end := context.WithTimeout(context.Background(), 3*treePatience)
	defer end()
	t.p.holdAll()
	planted, released := time.Now(), false
	defer func() {
		if !released {
			t.p.releaseAll()
		}
	}()
	req := t.load.newRequest(id)
	req.Agent, req.Prompt, req.MaxTokens, req.MaxToolCalls = "forker", fmt.Sprintf("fork %d for %s%s", treeDeep, tag, id), treeTokens, treeCalls
	req.MaxDepth, req.MaxAgents = treeDeep+1, treeAgents
	if err := repeatRequest(ctx, func() error { _, err := t.client.Run(ctx, req); return err }); err != nil {
		return err
	}
	enough := func() bool { return t.p.countWaiting() >= treeLeaves }
	if !grown {
		calls := 1 + treeWide + random.IntN(treeLeaves)
		enough = func() bool { return t.p.callsAfter(planted) >= calls }
	}
	if err := waitUntil(treePatience, enough); err != nil {
		return fmt.Errorf("%d of %d leaves are at work: %w; it stands so: %s", t.p.countWaiting(), treeLeaves, err, t.load.lastEntries(id))
	}
	b := t.injectFault(kind, random)
	asked := time.Now()
	var account client.CancelReply
	if err := repeatRequest(ctx, func() (err error) {
		account, err = t.client.Cancel(ctx, client.CancelRequest{RunID: id, Request: "tree-" + id, Why: "enough", Now: true})
		return err
	}); err != nil {
		return err
	}
	canceled := time.Now()
	if b != nil && b.kind == cutNode { // it is alive and gets answers, but its writes reach no server
		t.p.releaseAll()
		released = true
	}
	result, early, err := t.awaitEnd(ctx, id)
	if err != nil {
		return err
	}
	took := time.Since(asked)
	t.nodes.awaitFaults() // the node that was cut off is back, and does whatever it still tries to do
	if !released {
		t.p.releaseAll()
		released = true
	}
	if err := sleepFor(ctx, t.o.ttl); err != nil {
		return err
	}
	late := t.p.callsSince(func(node string) time.Time { return t.o.stillBegins(account, b, node, canceled) })
	t.judgeCancel(no, grown, result, b, account, took, early, late)
	return t.withPost(func(post *jetstream.Post) error {
		f, err := replayRun(post, id)
		if err != nil {
			return err
		}
		for _, p := range f.problems {
			t.found.addOf(id, "tree %d: %s", no, p)
		}
		return nil
	})
}

// awaitEnd waits for the end of a canceled run. early is the first account of the cancel
// that a node gave.
func (t *treeCancels) awaitEnd(ctx context.Context, id string) (r *event.Result, early string, err error) {
	for {
		var info client.RunInfo
		if err := repeatRequest(ctx, func() (err error) { info, err = t.client.Get(ctx, id); return err }); err != nil {
			return nil, early, err
		}
		if info.Result != nil && info.Result.Cancel != nil && early == "" {
			early = info.Result.Cancel.Text
		}
		if info.State == client.RunFinished {
			return info.Result, early, nil
		}
		if err := sleepFor(ctx, poll); err != nil {
			return nil, early, fmt.Errorf("it did not end; %s", early)
		}
	}
}

// stillBegins returns the time until which a node may begin calls: until the cancel was
// acknowledged, or until its lease ends if the acknowledgement names it as a node whose
// agents have not stopped.
func (o options) stillBegins(account client.CancelReply, b *fault, node string, canceled time.Time) time.Time {
	named := slices.ContainsFunc(account.Pending, func(p client.PendingOn) bool { return p.Node == node })
	if !named || b == nil || b.node != node {
		return canceled
	}
	if end := b.at.Add(o.ttl); end.After(canceled) {
		return end
	}
	return canceled
}

func (t *treeCancels) judgeCancel(no int, grown bool, r *event.Result, b *fault, account client.CancelReply, took time.Duration, early string, late int) {
	how := map[bool]string{true: "grown", false: "growing"}[grown] + ", all nodes well"
	if b != nil {
		how = strings.TrimSuffix(how, "all nodes well") + b.node + " " + b.kind
		if b.kind != killed {
			how += fmt.Sprintf(" for %v", b.frozen)
		}
	}
	on := map[string]int{}
	for _, a := range r.Agents {
		on[a.Node]++
		if a.Phase != "done" {
			t.found.add("tree %d: %s is %s", no, a.ID, a.Phase)
		}
	}
	c := r.Cancel
	if c == nil || c.Stopped != c.Agents || grown && c.Agents != treeAgents || len(c.Pending)+len(c.Orphans) > 0 {
		t.found.add("tree %d: the account of the cancel is %+v", no, c)
		return
	}
	if late > 0 {
		t.found.add("tree %d: %d model calls began after %q", no, late, account.Text)
	}
	fmt.Printf("tree %d, %s: acknowledged %q; %s in %v (first account: %s); %d model calls begun after; agents by the node that ended them %v\n",
		no, how, account.Text, c.Text, took.Round(time.Millisecond), early, late, on)
}
