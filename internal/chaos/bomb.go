package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"time"

	"github.com/troupe-run/troupe/actors/life"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/gateway"
	"github.com/troupe-run/troupe/mailbox/jetstream"
	"github.com/troupe-run/troupe/supervisor"
)

// What a bomb may do (FM21), and what it wishes: each of its agents, in each of its
// turns, more children than it may have, of which each wishes the same.
const (
	bombDepth  = 10
	bombWish   = 16
	bombTurns  = 3 // in which an agent wishes
	bombTokens = 6_000_000
	bombCalls  = 200_000
)

// shell is a shape of bombs: many at once reach the number of agents, one after the
// other the depth.
type shell struct{ children, agents int }

var shells = []shell{{4, 120}, {1, 40}}

// bomber is the agent of bombs.
const bomber = `---
name: bomber
description: delegates
tools: delegate
x-troupe:
  delegates: [bomber]
---
agent: bomber
`

var explodes = regexp.MustCompile(`explode for ` + tag)

// explode answers an agent of a bomb.
func (p *provider) explode(w http.ResponseWriter, body []byte, taken int, run string) bool {
	if taken >= bombTurns || !explodes.Match(body) {
		return false
	}
	tasks := make([]string, bombWish)
	for i := range tasks {
		tasks[i] = fmt.Sprintf(`{"agent":"bomber","task":"explode for %s%s"}`, tag, run)
	}
	p.delegates(w, tasks)
	return true
}

// playBombs lets ordinary runs go on alone, and then beside bombs, one after the
// other. What the bombs may have they get, and no more, and the others hardly feel it.
func (t *theatre) playBombs() {
	if err := os.WriteFile(t.stage.agent("bomber"), []byte(bomber), 0o644); err != nil {
		t.found.add("%v", err)
		return
	}
	runs := t.o.runs
	t.volley(runs)
	alone := t.load.between(0, t.load.ended())
	fmt.Printf("%d runs alone: p50 %v, p99 %v\n", len(alone), part(alone, 0.5), part(alone, 0.99))
	t.load.mu.Lock()
	t.load.enough, t.load.begun, t.o.runs = false, 0, 0
	before := len(t.load.runs)
	t.load.mu.Unlock()
	t.load.begin()
	for n := range t.o.bombs {
		if err := t.bomb(n + 1); err != nil {
			t.found.add("bomb %d: %v", n+1, err)
		}
	}
	t.load.finish()
	beside := t.load.between(before, t.load.ended())
	fmt.Printf("%d runs beside bombs: p50 %v, p99 %v\n", len(beside), part(beside, 0.5), part(beside, 0.99))
	t.judgeBeside(alone, beside)
	t.indexed()
}

// judgeBeside: who has no part in a bomb may be slowed down by it, to half the speed.
func (t *theatre) judgeBeside(alone, beside []time.Duration) {
	if len(alone) == 0 || len(beside) == 0 {
		t.found.add("%d runs ended alone, and %d beside bombs", len(alone), len(beside))
	}
	if part(beside, 0.99) > 2*part(alone, 0.99)+t.o.slack {
		t.found.add("runs took %v beside bombs (p99), and %v alone", part(beside, 0.99), part(alone, 0.99))
	}
}

// between is how long runs took, of those that ended from the nth to the mth.
func (l *load) between(from, to int) []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []time.Duration
	for _, r := range l.runs[from:to] {
		list = append(list, r.took)
	}
	slices.Sort(list)
	return list
}

// bomb sets one off, waits for its end, and holds every step of its supervisor
// against what it may do.
func (t *theatre) bomb(no int) error {
	id := client.NewID()
	ctx, end := context.WithTimeout(context.Background(), runPatience)
	defer end()
	req := t.load.request(id)
	req.Agent, req.Prompt, req.MaxTokens, req.MaxToolCalls = "bomber", "explode for "+tag+id, bombTokens, bombCalls
	sh := shells[no%len(shells)]
	req.MaxDepth, req.MaxAgents, req.MaxChildren = bombDepth, sh.agents+t.o.more(), sh.children+t.o.more()
	began := time.Now()
	if err := again(ctx, func() error { _, err := t.client.Run(ctx, req); return err }); err != nil {
		return err
	}
	info, err := t.defused(ctx, id)
	if err != nil {
		return fmt.Errorf("%w; it stands so: %s", err, t.load.stands(id))
	}
	took := time.Since(began)
	var f *folded
	if err := t.post(func(post *jetstream.Post) (err error) { f, err = fold(post, id); return err }); err != nil {
		return err
	}
	for _, p := range f.problems {
		t.found.of(id, "bomb %d: %s", no, p)
	}
	asked := t.p.counted(id)
	t.judgeBomb(no, sh, info.Result, f, asked)
	b := info.Result.Budget
	fmt.Printf("bomb %d: %s after %v; %d agents of %d, at most %d deep of %d and %d children at once of %d; %d model calls, %d of %d tokens used\n",
		no, info.Result.Reason, took.Round(time.Millisecond), f.peak.agents, sh.agents, f.peak.deep, bombDepth, f.peak.children, sh.children, asked, b.Used, b.Limit)
	return nil
}

// defused waits for the end of a bomb. An agent whose every wish is refused asks a
// person sooner or later, who says that it should go on.
func (t *theatre) defused(ctx context.Context, id string) (info client.RunInfo, err error) {
	for {
		if err := again(ctx, func() (err error) { info, err = t.client.Wait(ctx, id); return err }); err != nil || info.State == gateway.Finished {
			return info, err
		}
		for _, a := range info.Result.Agents {
			if a.Query == nil {
				continue
			}
			req := client.AnswerRequest{RunID: id, Request: "defuse-" + hashed(string(a.ID)+" "+a.Query.Query), Agent: string(a.ID), Query: a.Query.Query, Decision: "text", Text: "go on alone"}
			if err := again(ctx, func() error { return t.client.Answer(ctx, req) }); err != nil && !over(err) {
				return info, err
			}
		}
		if err := pause(ctx, poll); err != nil {
			return info, err
		}
	}
}

func (t *theatre) judgeBomb(no int, sh shell, r *supervisor.Result, f *folded, asked int) {
	for _, a := range r.Agents {
		if a.Phase != "done" {
			t.found.of(f.run, "bomb %d: its run is over, and %s is %s", no, a.ID, a.Phase)
		}
	}
	if f.peak.agents != sh.agents || len(r.Agents) != sh.agents || f.peak.children != sh.children || f.peak.deep > bombDepth || sh.children == 1 && f.peak.deep < bombDepth {
		t.found.of(f.run, "bomb %d: %d agents of %d, %d children of %d, %d deep of %d", no, f.peak.agents, sh.agents, f.peak.children, sh.children, f.peak.deep, bombDepth)
	}
	b, known := r.Budget, int64(f.replied*(inputTokens+outputTokens))
	if b.Used > b.Limit || b.Reserved != 0 || b.Overrun != 0 || b.Used-b.Unknown != known || int64(asked*(inputTokens+outputTokens)) > b.Used {
		t.found.of(f.run, "bomb %d: %d replies to %d requests, and its budget says %+v", no, f.replied, asked, b)
	}
}

// peak is the most of each that a run ever had, by its supervisor's log.
type peak struct{ agents, children, deep, waiting int }

// weigh takes one step of a supervisor: at none may more be spent and held than the
// limit, and no cap may be exceeded.
func (f *folded) weigh(s *life.Supervisor) {
	if !s.State.Pool.Within() {
		f.bad("%s: more is spent and held than the limit: %+v", s.Addr, s.State.Pool)
	}
	f.peak.agents, f.peak.waiting = max(f.peak.agents, s.State.Count()), max(f.peak.waiting, s.State.Waiting())
	s.State.Members(func(m supervisor.Member) {
		f.peak.children, f.peak.deep = max(f.peak.children, m.Children), max(f.peak.deep, m.Depth+1)
	})
}
