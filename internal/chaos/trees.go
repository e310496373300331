package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/gateway"
	"github.com/troupe-run/troupe/mailbox/jetstream"
	"github.com/troupe-run/troupe/supervisor"
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
	// a node that comes back has nothing left to say.
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
agent: forker
`

// forks is how many levels are below the agent that asks: its task says it.
var forks = regexp.MustCompile(`fork ([0-9]) for ` + tag)

// fork answers an agent of a tree that has to delegate. A leaf is left to think.
func (p *provider) fork(w http.ResponseWriter, body []byte, run string) bool {
	found := forks.FindSubmatch(body)
	if found == nil {
		return false
	}
	p.mu.Lock()
	p.begun = append(p.begun, time.Now())
	p.mu.Unlock()
	level, err := strconv.Atoi(string(found[1]))
	if err != nil || level == 0 {
		return false
	}
	tasks := make([]string, treeWide)
	for i := range tasks {
		tasks[i] = fmt.Sprintf(`{"agent":"forker","task":"fork %d for %s%s"}`, level-1, tag, run)
	}
	p.delegates(w, tasks)
	return true
}

// since counts the model calls of trees that began after a moment, by the clock of the double.
func (p *provider) since(t time.Time) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, at := range p.begun {
		if at.After(t) {
			n++
		}
	}
	return n
}

// playTrees cancels trees over all nodes while their leaves are in a model call:
// half of them with one node cut off, which comes back later.
func (t *theatre) playTrees() {
	for name, text := range map[string]string{filepath.Join(t.stage.dir, "agents", "forker.md"): forker, t.stage.ledger: ""} { // no effects
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.found.add("%v", err)
			return
		}
	}
	random := rand.New(rand.NewPCG(t.o.seed, 0))
	fmt.Printf("seed %d: trees of %d agents on %d nodes, TTL %v\n", t.o.seed, treeAgents, t.o.nodes, t.o.ttl)
	for n := range t.o.trees {
		for _, cut := range []bool{false, true} {
			if err := t.tree(n+1, cut, random); err != nil {
				t.found.add("tree %d: %v", n+1, err)
				return
			}
		}
	}
}

// tree lets one tree grow, cancels it, and looks who stopped.
func (t *theatre) tree(no int, cut bool, random *rand.Rand) error {
	id := client.NewID()
	ctx, end := context.WithTimeout(context.Background(), 3*treePatience)
	defer end()
	t.p.hold()
	released := false
	defer func() {
		if !released {
			t.p.release()
		}
	}()
	req := t.load.request(id)
	req.Agent, req.Prompt, req.MaxTokens, req.MaxToolCalls = "forker", fmt.Sprintf("fork %d for %s%s", treeDeep, tag, id), treeTokens, treeCalls
	req.MaxDepth, req.MaxAgents = treeDeep+1, treeAgents
	if err := again(ctx, func() error { _, err := t.client.Run(ctx, req); return err }); err != nil {
		return err
	}
	if err := t.until(treePatience, func() bool { return t.p.waiting() >= treeLeaves }); err != nil {
		return fmt.Errorf("%d of %d leaves are at work: %w; it stands so: %s", t.p.waiting(), treeLeaves, err, t.load.stands(id))
	}
	var b *blow
	if cut {
		m := t.nodes.victim(random)
		b = &blow{no: len(t.blows) + 1, kind: stopped, node: m.name, at: time.Now(), frozen: t.o.ttl*2 + 2*time.Second}
		t.blows = append(t.blows, b)
		if t.harm != nil {
			t.harm.sever(m, b)
		} else {
			t.nodes.deal(m, b)
		}
	}
	asked := time.Now()
	if err := again(ctx, func() error {
		return t.client.Cancel(ctx, client.CancelRequest{RunID: id, Request: "tree-" + id, Why: "enough", Now: true})
	}); err != nil {
		return err
	}
	canceled := time.Now()
	if b != nil && b.kind == cutNode { // it lives, and its models answer: what it does with that nobody hears
		t.p.release()
		released = true
	}
	result, early, err := t.stopped(ctx, id)
	if err != nil {
		return err
	}
	took := time.Since(asked)
	t.nodes.settle() // who was cut off is back, and whatever it still wants to do it does
	if !released {
		t.p.release()
		released = true
	}
	if err := pause(ctx, t.o.ttl); err != nil {
		return err
	}
	t.judgeTree(no, result, b, took, early, t.p.since(canceled))
	return t.post(func(post *jetstream.Post) error {
		f, err := fold(post, id)
		if err != nil {
			return err
		}
		for _, p := range f.problems {
			t.found.of(id, "tree %d: %s", no, p)
		}
		return nil
	})
}

// stopped waits for the end of a canceled run. early is the first account of
// the cancel that somebody gave.
func (t *theatre) stopped(ctx context.Context, id string) (r *supervisor.Result, early string, err error) {
	for {
		var info client.RunInfo
		if err := again(ctx, func() (err error) { info, err = t.client.Get(ctx, id); return err }); err != nil {
			return nil, early, err
		}
		if info.Result != nil && info.Result.Cancel != nil && early == "" {
			early = info.Result.Cancel.Text
		}
		if info.State == gateway.Finished {
			return info.Result, early, nil
		}
		if err := pause(ctx, poll); err != nil {
			return nil, early, fmt.Errorf("it did not end; %s", early)
		}
	}
}

func (t *theatre) judgeTree(no int, r *supervisor.Result, b *blow, took time.Duration, early string, late int) {
	how := "all nodes well"
	if b != nil {
		how = fmt.Sprintf("%s cut off for %v (%s)", b.node, b.frozen, map[bool]string{true: "its wires", false: "frozen"}[b.kind == cutNode])
	}
	on := map[string]int{}
	for _, a := range r.Agents {
		on[a.Node]++
		if a.Phase != "done" {
			t.found.add("tree %d: %s is %s", no, a.ID, a.Phase)
		}
	}
	c := r.Cancel
	if c == nil || c.Agents != treeAgents || c.Stopped != treeAgents || len(c.Pending)+len(c.Orphans) > 0 {
		t.found.add("tree %d: the account of the cancel is %+v", no, c)
		return
	}
	if late > 0 {
		t.found.add("tree %d: %d model calls began after the cancel", no, late)
	}
	fmt.Printf("tree %d, %s: %s in %v (first account: %s); %d model calls begun after; agents by the node that ended them %v\n",
		no, how, c.Text, took.Round(time.Millisecond), early, late, on)
}
