package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/trap"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/jetstream"
	"github.com/troupe-run/troupe/supervisor"
)

const (
	// deathsMax is how many processes one entry may kill (PROTOCOL P18).
	deathsMax = 3
	// livesMax is how many lives such an actor may have: those that die, and the one
	// that is given up.
	livesMax = deathsMax + 1
	// poisonCost is how much longer other runs may take (p99) beside entries that panic.
	poisonCost = 2
)

// poison is an entry that whoever reads it does not survive.
type poison struct{ agent, action, what string }

var (
	panics = []poison{
		{"root", trap.Panic, "an agent's entry that panics whoever reads it"},
		{"super", trap.Panic, "a supervisor's entry that panics whoever reads it"},
	}
	killer = poison{"root", trap.KillAll, "an agent's entry that kills the process that reads it"}
)

// playPoison has runs go on alone, and then beside entries that panic, one after the
// other: those runs must be parked, and no others, which must not feel it. Then comes
// one that kills whole nodes.
func (t *theatre) playPoison() {
	runs := t.o.runs
	t.volley(runs)
	before := t.load.ended()
	alone := t.load.between(0, before)
	over := make(chan struct{})
	go func() {
		defer close(over)
		t.volley(runs)
	}()
	dealt := 0
	for going := true; going; dealt++ {
		t.deal(panics[dealt%len(panics)])
		select {
		case <-over:
			going = false
		default:
		}
	}
	beside := t.load.between(before, t.load.ended())
	fmt.Printf("%d runs alone: p50 %v, p99 %v; %d beside %d entries that panic: p50 %v, p99 %v\n",
		len(alone), part(alone, 0.5), part(alone, 0.99), len(beside), dealt, part(beside, 0.5), part(beside, 0.99))
	if suffered(part(alone, 0.99), part(beside, 0.99)) {
		t.found.add("runs took %v beside entries that panic (p99), and %v alone", part(beside, 0.99), part(alone, 0.99))
	}
	t.load.mu.Lock()
	t.load.enough, t.load.begun, t.o.runs = false, 0, 0
	t.load.mu.Unlock()
	t.load.begin()
	t.deal(killer)
	t.nodes.settle()
	t.load.finish()
}

func suffered(alone, beside time.Duration) bool { return beside > poisonCost*alone }

// deal gives the nodes one such entry, and judges what came of it.
func (t *theatre) deal(p poison) {
	id := client.NewID()
	t.poison(trap.Read+"."+id+"."+p.agent, p.action)
	began := time.Now()
	ended := make(chan *supervisor.Result, 1)
	go func() { ended <- t.load.poisoned(id) }()
	got := poisoning{kills: p.action == trap.KillAll}
	for over := false; !over; {
		select {
		case got.result = <-ended:
			over = true
		case <-time.After(poll):
			got.died += t.nodes.bury()
		}
	}
	got.died += t.nodes.bury()
	if err := t.post(func(post *jetstream.Post) error {
		f, err := fold(post, id)
		if err == nil {
			got.lives = len(f.claims[string(mailbox.At(id, p.agent))])
		}
		return err
	}); err != nil {
		t.found.of(id, "%s: its logs: %v", p.what, err)
	}
	fmt.Printf("%s: %s after %v, in %d lives; %d nodes died\n", p.what, ending(got.result), time.Since(began).Round(time.Millisecond), got.lives, got.died)
	for _, bad := range got.judge() {
		t.found.of(id, "%s: %s", p.what, bad)
	}
	if got.result == nil {
		t.found.of(id, "%s: its run stands so: %s", p.what, t.load.stands(id))
	}
	t.poison("", "")
}

// poisoning is what came of such an entry.
type poisoning struct {
	kills       bool // whole nodes, that is
	result      *supervisor.Result
	lives, died int
}

// judge says what of it breaks a promise.
func (p poisoning) judge() (bad []string) {
	switch {
	case p.result == nil:
		bad = append(bad, "its run has no end")
	case p.result.Reason != agent.ResumeUnsafe:
		bad = append(bad, "its run ended "+ending(p.result))
	}
	if p.died > deathsMax || !p.kills && p.died > 0 {
		bad = append(bad, fmt.Sprintf("%d nodes died", p.died))
	}
	if p.lives > livesMax {
		bad = append(bad, fmt.Sprintf("it had %d lives", p.lives))
	}
	return bad
}

// ending is how a run ended, for people.
func ending(r *supervisor.Result) string {
	if r == nil {
		return "no end"
	}
	return fmt.Sprintf("%s (%s)", r.Reason, r.Detail)
}

// poison sets a trap that stays for all nodes, those to come as well, or takes
// away the one that there is.
func (t *theatre) poison(place, action string) {
	t.nodes.mu.Lock()
	defer t.nodes.mu.Unlock()
	for _, m := range t.nodes.list {
		if t.nodes.place != "" {
			_ = os.Remove(filepath.Join(t.stage.traps(m.name), t.nodes.place)) // not of a node that came later
		}
		if place == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(t.stage.traps(m.name), place), []byte(action), 0o644); err != nil {
			t.found.add("%v", err)
		}
	}
	t.nodes.place, t.nodes.action = place, action
}

// bury replaces the nodes that died by themselves.
func (n *nodes) bury() (died int) {
	n.mu.Lock()
	var dead []*member
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
		n.wait.Go(n.replace)
	}
	return len(dead)
}

// poisoned starts a run, and waits for its end or until it waits for somebody.
func (l *load) poisoned(id string) *supervisor.Result {
	ctx, cancel := context.WithTimeout(context.Background(), runPatience)
	defer cancel()
	if err := again(ctx, func() error {
		_, err := l.t.client.Run(ctx, l.request(id))
		return err
	}); err != nil {
		l.t.found.of(id, "run %s was not accepted: %v", id, err)
		return nil
	}
	var info client.RunInfo
	if err := again(ctx, func() (err error) {
		info, err = l.t.client.Wait(ctx, id)
		return err
	}); err != nil {
		l.t.found.of(id, "run %s did not end: %v", id, err)
		return nil
	}
	return info.Result
}
