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
	"github.com/troupe-run/troupe/supervisor"
)

// deathsMax is how many processes one entry may kill (PROTOCOL P18).
const deathsMax = 3

// poisons are entries that whoever reads them does not survive.
var poisons = []struct{ agent, action, what string }{
	{"root", trap.Panic, "an agent's entry that panics whoever reads it"},
	{"super", trap.Panic, "a supervisor's entry that panics whoever reads it"},
	{"root", trap.KillAll, "an agent's entry that kills the process that reads it"},
}

// playPoison gives the nodes entries that nobody survives, one after the other,
// while other runs go on. Those runs must be parked, and no others.
func (t *theatre) playPoison() {
	t.load.begin()
	for _, p := range poisons {
		id := client.NewID()
		t.poison(trap.Read+"."+id+"."+p.agent, p.action)
		began := time.Now()
		ended := make(chan *supervisor.Result, 1)
		t.load.wait.Go(func() { ended <- t.load.poisoned(id) })
		died := 0
		var result *supervisor.Result
		for over := false; !over; {
			select {
			case result = <-ended:
				over = true
			case <-time.After(poll):
				died += t.nodes.bury()
			}
		}
		died += t.nodes.bury()
		fmt.Printf("%s: %s after %v; %d nodes died\n", p.what, ending(result), time.Since(began).Round(time.Millisecond), died)
		switch {
		case result == nil:
			t.found.of(id, "%s: its run has no end; it stands so: %s", p.what, t.load.stands(id))
		case result.Reason != agent.ResumeUnsafe:
			t.found.of(id, "%s: its run ended %s", p.what, ending(result))
		}
		if died > deathsMax || p.action == trap.Panic && died > 0 {
			t.found.of(id, "%s: %d nodes died", p.what, died)
		}
		t.poison("", "")
	}
	t.nodes.settle()
	t.load.finish()
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
