package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/failpoint"
	"github.com/troupe-run/troupe/internal/logstore/jetstream"
	"github.com/troupe-run/troupe/mailbox"
)

const (
	// deathsMax is how many processes one entry may kill (PROTOCOL P18).
	deathsMax = 3
	// livesMax is how many activations such an actor may have: those that die, and the one
	// that is given up.
	livesMax = deathsMax + 1
	// poisonCost is the factor by which other runs may slow down (p99) while entries cause panics.
	poisonCost = 2
)

// poisonEntry is an entry that makes its reader fail.
type poisonEntry struct{ agent, action, what string }

var (
	panics = []poisonEntry{
		{"root", failpoint.Panic, "an agent's entry that panics whoever reads it"},
		{"super", failpoint.Panic, "a supervisor's entry that panics whoever reads it"},
	}
	killer = poisonEntry{"root", failpoint.KillAll, "an agent's entry that kills the process that reads it"}
)

// poisonedLogs is the scenario in which reading some entries makes an actor or a node fail.
type poisonedLogs struct{ *testCluster }

// run executes runs alone, and then next to entries that panic, one after the other. Those
// runs must be parked, and no other run may be parked or slowed down. Then comes an entry
// that kills whole nodes.
func (t *poisonedLogs) run() {
	runs := t.o.runs
	t.load.runBatch(runs)
	before := t.load.countEnded()
	alone := t.load.durationsBetween(0, before)
	over := make(chan struct{})
	go func() {
		defer close(over)
		t.load.runBatch(runs)
	}()
	dealt := 0
	for going := true; going; dealt++ {
		t.runOne(panics[dealt%len(panics)])
		select {
		case <-over:
			going = false
		default:
		}
	}
	beside := t.load.durationsBetween(before, t.load.countEnded())
	fmt.Printf("%d runs alone: p50 %v, p99 %v; %d beside %d entries that panic: p50 %v, p99 %v\n",
		len(alone), quantile(alone, 0.5), quantile(alone, 0.99), len(beside), dealt, quantile(beside, 0.5), quantile(beside, 0.99))
	if isSlowed(quantile(alone, 0.99), quantile(beside, 0.99)) {
		t.found.add("runs took %v beside entries that panic (p99), and %v alone", quantile(beside, 0.99), quantile(alone, 0.99))
	}
	t.load.mu.Lock()
	t.load.enough, t.load.begun, t.o.runs = false, 0, 0
	t.load.mu.Unlock()
	t.load.beginRuns()
	t.runOne(killer)
	t.nodes.awaitFaults()
	t.load.awaitEnd()
}

func isSlowed(alone, beside time.Duration) bool { return beside > poisonCost*alone }

// runOne gives the nodes one such entry, and judges the outcome.
func (t *poisonedLogs) runOne(p poisonEntry) {
	id := client.NewID()
	t.nodes.setTrap(failpoint.Read+"."+id+"."+p.agent, p.action)
	began := time.Now()
	ended := make(chan *event.Result, 1)
	go func() { ended <- t.load.runPoisoned(id) }()
	got := poisonOutcome{kills: p.action == failpoint.KillAll}
	for over := false; !over; {
		select {
		case got.result = <-ended:
			over = true
		case <-time.After(poll):
			got.died += t.nodes.replaceDead()
		}
	}
	got.died += t.nodes.replaceDead()
	if err := t.withPost(func(post *jetstream.Post) error {
		f, err := replayRun(post, id)
		if err == nil {
			got.lives = len(f.claims[string(mailbox.At(id, p.agent))])
		}
		return err
	}); err != nil {
		t.found.addOf(id, "%s: its logs: %v", p.what, err)
	}
	fmt.Printf("%s: %s after %v, in %d activations; %d nodes died\n", p.what, describeEnd(got.result), time.Since(began).Round(time.Millisecond), got.lives, got.died)
	for _, bad := range got.listProblems() {
		t.found.addOf(id, "%s: %s", p.what, bad)
	}
	if got.result == nil {
		t.found.addOf(id, "%s: its run stands so: %s", p.what, t.load.lastEntries(id))
	}
	t.nodes.setTrap("", "")
}

// poisonOutcome is the outcome of such an entry.
type poisonOutcome struct {
	kills       bool // whole nodes, that is
	result      *event.Result
	lives, died int
}

// listProblems lists the broken promises.
func (p poisonOutcome) listProblems() (bad []string) {
	switch {
	case p.result == nil:
		bad = append(bad, "its run has no end")
	case p.result.Reason != spec.ResumeUnsafe:
		bad = append(bad, "its run ended "+describeEnd(p.result))
	}
	if p.died > deathsMax || !p.kills && p.died > 0 {
		bad = append(bad, fmt.Sprintf("%d nodes died", p.died))
	}
	if p.lives > livesMax {
		bad = append(bad, fmt.Sprintf("it had %d activations", p.lives))
	}
	return bad
}

// describeEnd is how a run ended, for people.
func describeEnd(r *event.Result) string {
	if r == nil {
		return "no end"
	}
	return fmt.Sprintf("%s (%s)", r.Reason, r.Detail)
}

// setTrap sets a trap that stays for all nodes, also for those that start later. An
// empty place removes the present one.
func (n *nodes) setTrap(place, action string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, m := range n.list {
		if n.place != "" {
			_ = os.Remove(filepath.Join(n.t.files.trapsDir(m.name), n.place)) // not of a node that came later
		}
		if place == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(n.t.files.trapsDir(m.name), place), []byte(action), 0o644); err != nil {
			n.t.found.add("%v", err)
		}
	}
	n.place, n.action = place, action
}

// replaceDead replaces the nodes that died by themselves.
func (n *nodes) replaceDead() (died int) {
	n.mu.Lock()
	var dead []*nodeProcess
	for _, m := range n.list {
		select {
		case <-m.gone:
			if m.ready {
				m.ready = false
				dead = append(dead, m)
			}
		default:
		}
	}
	n.mu.Unlock()
	for range dead {
		n.wait.Go(n.replaceNode)
	}
	return len(dead)
}

// runPoisoned starts a run, and waits until it ends or waits for the user.
func (l *load) runPoisoned(id string) *event.Result {
	ctx, cancel := context.WithTimeout(context.Background(), runPatience)
	defer cancel()
	if err := repeatRequest(ctx, func() error {
		_, err := l.t.client.Run(ctx, l.newRequest(id))
		return err
	}); err != nil {
		l.t.found.addOf(id, "run %s was not accepted: %v", id, err)
		return nil
	}
	var info client.RunInfo
	if err := repeatRequest(ctx, func() (err error) {
		info, err = l.t.client.Wait(ctx, id)
		return err
	}); err != nil {
		l.t.found.addOf(id, "run %s did not end: %v", id, err)
		return nil
	}
	return info.Result
}
