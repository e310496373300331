package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/gateway"
	"github.com/troupe-run/troupe/mailbox/jetstream"
)

// problems are the promises that were broken.
type problems struct {
	mu   sync.Mutex
	list []string
	runs []string // that they are about
}

// of adds one that is about a run.
func (p *problems) of(run, format string, args ...any) {
	p.add(format, args...)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.runs = append(p.runs, run)
}

// add prints and keeps one.
func (p *problems) add(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = append(p.list, text)
	fmt.Println("PROBLEM:", text)
}

// judge looks at what is left: the ledger, the double's book, the results and
// the processes.
func (t *theatre) judge() {
	lines := t.entries()
	err := t.post(func(post *jetstream.Post) error {
		for _, r := range t.load.runs {
			t.judgeRun(r, lines[r.id])
			t.judgeLogs(post, r, lines[r.id])
		}
		return nil
	})
	if err != nil {
		t.found.add("the logs cannot be read: %v", err)
	}
	judged := 0
	for _, a := range t.afterlives {
		judged += a.zombies
	}
	if judged != t.o.zombies*len(zombies) {
		t.found.add("of %d zombies %d were judged", t.o.zombies*len(zombies), judged)
	}
	for _, bad := range t.p.bad {
		t.found.add("a malformed request: %s", bad)
	}
	near := t.o.ttl + takeoverMore
	if _, alone := t.witness.takeovers(killed, near); part(alone, 0.99) > t.o.ttl+t.o.slack {
		t.found.add("an actor was taken over %v after a death (p99 of %d)", part(alone, 0.99), len(alone))
	}
	if _, alone := t.witness.takeovers(drained, near); part(alone, 0.99) > t.o.slack {
		t.found.add("an actor was handed over %v after a drain (p99 of %d)", part(alone, 0.99), len(alone))
	}
	if left := leftovers(t.stage.dir); len(left) > 0 {
		t.found.add("processes are left: %v", left)
	}
}

// takeoverMore is how much longer than the TTL the effects of a blow are near.
const takeoverMore = 2 * time.Second

// judgeRun holds one run against the ledger and the double's book.
func (t *theatre) judgeRun(r *ran, effects map[string]int) {
	if r.result == nil {
		return // that it did not end was said
	}
	b := r.result.Budget
	requests := t.p.counted(r.id)
	atLeast := int64(requests * (inputTokens + outputTokens))
	planned := t.o.kills+t.o.stops+t.o.points+t.o.zombies == 0 && !t.o.harmed()
	if r.canceled {
		t.judgeCanceled(r)
	}
	if b.Used > b.Limit || b.Overrun > 0 || b.Reserved != 0 || b.Used < atLeast {
		t.found.of(r.id, "run %s: the double counted %d tokens, and its budget says %+v", r.id, atLeast, b)
	}
	switch {
	case r.canceled && r.result.Reason != agent.Completed: // it was looked at
	case t.o.tokens < runTokens:
		if r.result.Reason != agent.Completed && r.result.Reason != agent.TokenBudget {
			t.found.of(r.id, "run %s could spend %d tokens, and ended %s: %s", r.id, t.o.tokens, r.result.Reason, r.result.Detail)
		}
	case r.result.Reason != agent.Completed:
		t.found.of(r.id, "run %s ended %s: %s", r.id, r.result.Reason, r.result.Detail)
	case len(effects) != t.effects() && !t.o.control:
		t.found.of(r.id, "run %s completed with %d of %d effects", r.id, len(effects), t.effects())
	case len(r.result.Agents) != 1+t.helpers():
		t.found.of(r.id, "run %s has %d agents", r.id, len(r.result.Agents))
	case planned && (b.Unknown > 0 || r.asked > 0 || requests != t.requests()):
		t.found.of(r.id, "run %s met drains only: %d requests of %d, %d charged for nothing, a person was asked %d times",
			r.id, requests, t.requests(), b.Unknown, r.asked)
	}
}

// helpers is how many children the root has: it delegates in its second turn.
func (t *theatre) helpers() int {
	if t.o.turns < 2 {
		return 0
	}
	return 2
}

// effects are those of a run that nothing befalls, requests its model calls.
func (t *theatre) effects() int {
	if t.o.turns < 2 {
		return t.o.turns
	}
	return t.o.turns - 1 + t.helpers()*helperTurns
}
func (t *theatre) requests() int { return t.o.turns + 1 + t.helpers()*(helperTurns+1) }

// entries is the ledger: how often each key of a run stands there.
func (t *theatre) entries() map[string]map[string]int {
	data, err := os.ReadFile(t.stage.ledger)
	if err != nil {
		t.found.add("there is no ledger: %v", err)
	}
	byRun := map[string]map[string]int{}
	for _, key := range strings.Fields(string(data)) {
		run, _, _ := strings.Cut(key, ".")
		if byRun[run] == nil {
			byRun[run] = map[string]int{}
		}
		byRun[run][key]++
	}
	return byRun
}

// doubles are effects that happened more often than a person allowed, and
// those that a person allowed.
func (t *theatre) doubles() (doubles, allowed int) {
	for run, keys := range t.entries() {
		for key, n := range keys {
			more := min(n-1, t.load.approved[key])
			allowed += more
			doubles += n - 1 - more
			if n-1 > more && !t.o.control {
				t.found.of(run, "%s happened %d times, %d approved", key, n, t.load.approved[key])
			}
		}
	}
	return doubles, allowed
}

// print sums up.
func (t *theatre) print() error {
	doubles, allowed := t.doubles()
	reasons, asked, unknown, requests := map[agent.Reason]int{}, 0, int64(0), 0
	var took []time.Duration
	for _, r := range t.load.runs {
		if r.result != nil {
			reasons[r.result.Reason]++
			unknown += r.result.Budget.Unknown
		}
		asked += r.asked
		requests += t.p.counted(r.id)
		took = append(took, r.took)
	}
	slices.Sort(took)
	fmt.Printf(`%d blows in %v; %d runs: %v, p50 %v, p99 %v, longest %v
effects: %d doubles, %d again by a person's word; a person was asked %d times
model: %d requests, %d malformed, %d without a break would be; %d tokens charged without an answer
entries that lives wrote after they were superseded, by kind: %v; all were as if they were not there, but for what tools returned
%s%s%s%s%s%s%s%s%d problems
`, len(t.blows), time.Since(t.began).Round(time.Second), len(t.load.runs), reasons, part(took, 0.5), part(took, 0.99), part(took, 1),
		doubles, allowed, asked, requests, len(t.p.bad), t.requests()*len(t.load.runs), unknown, t.stale,
		t.times(killed), t.times(stopped), t.times(drained), t.times(pointed), t.times(undead), t.undeadTold(), t.placed(), t.stoppedTold(), len(t.found.list))
	switch {
	case t.o.broken:
		return t.found.blind(t.o.finds())
	case t.o.control && doubles == 0:
		return errBlind
	case len(t.found.list) > 0:
		return errBroken
	}
	return nil
}

// times is a line about how long actors were without a node.
func (t *theatre) times(kind string) string {
	all, alone := t.witness.takeovers(kind, t.o.ttl+takeoverMore)
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("from a %s to the first sign of life elsewhere: %d actors, p50 %v, p99 %v, longest %v; with no other blow near %d, p50 %v, p99 %v, longest %v\n",
		kind, len(all), part(all, 0.5), part(all, 0.99), part(all, 1), len(alone), part(alone, 0.5), part(alone, 0.99), part(alone, 1))
}

var (
	errBlind  = errors.New("the control found no double: this test cannot see any")
	errBroken = errors.New("a promise was broken")
)

// indexed checks that those who ask are told the same ends.
func (t *theatre) indexed() {
	ctx, cancel := context.WithTimeout(context.Background(), spreadPatience)
	defer cancel()
	list, err := t.client.List(ctx)
	if err != nil {
		t.found.add("the list of runs: %v", err)
	}
	for _, i := range list {
		if i.State != gateway.Finished {
			t.found.add("run %s has ended, and the list has it %s", i.RunID, i.State)
		}
	}
}
