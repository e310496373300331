package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/logstore/jetstream"
	"github.com/troupe-run/troupe/supervisor"
)

// Limits of a spawn storm (FM21), and its requests: each of its agents requests in each
// turn more children than it may have, and each child requests the same.
const (
	stormDepth  = 10
	stormWish   = 16
	stormTurns  = 3 // in which an agent delegates
	stormTokens = 6_000_000
	stormCalls  = 200_000
)

// stormShape is the shape of a spawn storm: with many children at once it reaches the
// number of agents, with one at a time the depth.
type stormShape struct{ children, agents int }

var stormShapes = []stormShape{{4, 120}, {1, 40}}

// spawner is the agent of spawn storms.
const spawner = `---
name: spawner
description: delegates
tools: delegate
x-troupe:
  delegates: [spawner]
---
Delegate the task.
`

var spawnTask = regexp.MustCompile(`spawn for ` + tag)

// spawnMore answers an agent of a spawn storm.
func (p *provider) spawnMore(w http.ResponseWriter, body []byte, taken int, run string) bool {
	if taken >= stormTurns || !spawnTask.Match(body) {
		return false
	}
	tasks := make([]string, stormWish)
	for i := range tasks {
		tasks[i] = fmt.Sprintf(`{"agent":"spawner","task":"spawn for %s%s"}`, tag, run)
	}
	p.streamDelegation(w, tasks)
	return true
}

// spawnStorms is the scenario in which every agent of some runs delegates as much as it can.
type spawnStorms struct{ *testCluster }

// run executes ordinary runs alone, and then next to spawn storms, one after the other. The
// storms must reach their limits and not exceed them, and hardly slow the other runs.
func (t *spawnStorms) run() {
	if err := os.WriteFile(t.files.agentFile("spawner"), []byte(spawner), 0o644); err != nil {
		t.found.add("%v", err)
		return
	}
	runs := t.o.runs
	t.load.runBatch(runs)
	alone := t.load.durationsBetween(0, t.load.countEnded())
	fmt.Printf("%d runs alone: p50 %v, p99 %v\n", len(alone), quantile(alone, 0.5), quantile(alone, 0.99))
	t.load.mu.Lock()
	t.load.enough, t.load.begun, t.o.runs = false, 0, 0
	before := len(t.load.runs)
	t.load.mu.Unlock()
	t.load.beginRuns()
	for n := range t.o.storms {
		if err := t.runOne(n + 1); err != nil {
			t.found.add("spawn storm %d: %v", n+1, err)
		}
	}
	t.load.awaitEnd()
	beside := t.load.durationsBetween(before, t.load.countEnded())
	fmt.Printf("%d runs beside spawn storms: p50 %v, p99 %v\n", len(beside), quantile(beside, 0.5), quantile(beside, 0.99))
	t.judgeBeside(alone, beside)
	t.checkIndex()
}

// judgeBeside judges the ordinary runs: a spawn storm may slow them to half their speed.
func (t *spawnStorms) judgeBeside(alone, beside []time.Duration) {
	if len(alone) == 0 || len(beside) == 0 {
		t.found.add("%d runs ended alone, and %d beside spawn storms", len(alone), len(beside))
	}
	if quantile(beside, 0.99) > 2*quantile(alone, 0.99)+t.o.slack {
		t.found.add("runs took %v beside spawn storms (p99), and %v alone", quantile(beside, 0.99), quantile(alone, 0.99))
	}
}

// durationsBetween returns how long the runs took that ended from the nth to the mth.
func (l *load) durationsBetween(from, to int) []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []time.Duration
	for _, r := range l.runs[from:to] {
		list = append(list, r.took)
	}
	slices.Sort(list)
	return list
}

// runOne starts one spawn storm, waits for its end, and checks every step of its
// supervisor against its limits.
func (t *spawnStorms) runOne(no int) error {
	id := client.NewID()
	ctx, end := context.WithTimeout(context.Background(), runPatience)
	defer end()
	req := t.load.newRequest(id)
	req.Agent, req.Prompt, req.MaxTokens, req.MaxToolCalls = "spawner", "spawn for "+tag+id, stormTokens, stormCalls
	sh := stormShapes[no%len(stormShapes)]
	req.MaxDepth, req.MaxAgents, req.MaxChildren = stormDepth, sh.agents+t.o.extraAllowed(), sh.children+t.o.extraAllowed()
	began := time.Now()
	if err := repeatRequest(ctx, func() error { _, err := t.client.Run(ctx, req); return err }); err != nil {
		return err
	}
	info, err := t.load.waitAnswering(ctx, id)
	if err != nil {
		return fmt.Errorf("%w; it stands so: %s", err, t.load.lastEntries(id))
	}
	took := time.Since(began)
	var f *replayedRun
	if err := t.withPost(func(post *jetstream.Post) (err error) { f, err = replayRun(post, id); return err }); err != nil {
		return err
	}
	for _, p := range f.problems {
		t.found.addOf(id, "spawn storm %d: %s", no, p)
	}
	asked := t.p.countOf(id)
	t.judgeStorm(no, sh, info.Result, f, asked)
	b := info.Result.Budget
	fmt.Printf("spawn storm %d: %s after %v; %d agents of %d, at most %d deep of %d and %d children at once of %d; %d model calls, %d of %d tokens used\n",
		no, info.Result.Reason, took.Round(time.Millisecond), f.peak.agents, sh.agents, f.peak.deep, stormDepth, f.peak.children, sh.children, asked, b.Used, b.Limit)
	return nil
}

func (t *spawnStorms) judgeStorm(no int, sh stormShape, r *event.Result, f *replayedRun, asked int) {
	for _, a := range r.Agents {
		if a.Phase != "done" {
			t.found.addOf(f.run, "spawn storm %d: its run is over, and %s is %s", no, a.ID, a.Phase)
		}
	}
	if f.peak.agents != sh.agents || len(r.Agents) != sh.agents || f.peak.children != sh.children || f.peak.deep > stormDepth || sh.children == 1 && f.peak.deep < stormDepth {
		t.found.addOf(f.run, "spawn storm %d: %d agents of %d, %d children of %d, %d deep of %d", no, f.peak.agents, sh.agents, f.peak.children, sh.children, f.peak.deep, stormDepth)
	}
	b, known := r.Budget, int64(f.replied*(inputTokens+outputTokens))
	if b.Used > b.Limit || b.Reserved != 0 || b.Overrun != 0 || b.Used-b.Unknown != known || int64(asked*(inputTokens+outputTokens)) > b.Used {
		t.found.addOf(f.run, "spawn storm %d: %d replies to %d requests, and its budget says %+v", no, f.replied, asked, b)
	}
}

// peakUse holds the maxima that a run ever had, by its supervisor's log.
type peakUse struct{ agents, children, deep, waiting int }

// checkStep checks one step of a supervisor: what is spent and reserved must not exceed the
// limit, and no cap may be exceeded.
func (f *replayedRun) checkStep(s *activation.Supervisor) {
	if !s.State.Pool.Within() {
		f.addProblem("%s: more is spent and held than the limit: %+v", s.Addr, s.State.Pool)
	}
	f.peak.agents, f.peak.waiting = max(f.peak.agents, s.State.Count()), max(f.peak.waiting, s.State.Waiting())
	s.State.Members(func(m supervisor.Member) {
		f.peak.children, f.peak.deep = max(f.peak.children, m.Children), max(f.peak.deep, m.Depth+1)
	})
}
