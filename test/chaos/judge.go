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

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/logstore/jetstream"
)

// problems are the broken promises.
type problems struct {
	mu   sync.Mutex
	list []string
	runs []string // that they are about
}

// addOf adds one that is about a run.
func (p *problems) addOf(run, format string, args ...any) {
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

// clusterJudge checks the remains of a scenario against the promises of troupe: the ledger,
// the record of the provider double, the results, the logs and the processes.
type clusterJudge struct {
	*testCluster
	stale               map[string]int // see replayedRun
	children, elsewhere int            // all children, and those that began on another node than their parent
	canceled            int            // runs
	zombies             zombieJudge
	verified            verifiedRuns
}

func newClusterJudge(t *testCluster) *clusterJudge {
	return &clusterJudge{testCluster: t, stale: map[string]int{}, zombies: zombieJudge{t, map[string]zombieActions{}},
		verified: verifiedRuns{keep: t.o.keptRuns(t.files.dir)}}
}

// judgeAll checks the runs and their logs, the zombies, the takeovers and the processes.
func (t *clusterJudge) judgeAll() {
	lines := t.readLedger()
	err := t.withPost(func(post *jetstream.Post) error {
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
	for _, a := range t.zombies.afterlives {
		judged += a.zombies
	}
	if judged != t.o.zombies*len(zombies) {
		t.found.add("of %d zombies %d were judged", t.o.zombies*len(zombies), judged)
	}
	for _, bad := range t.p.bad {
		t.found.add("a malformed request: %s", bad)
	}
	near := t.o.ttl + takeoverMore
	if _, alone := t.observer.listTakeovers(killed, near); quantile(alone, 0.99) > t.o.ttl+t.o.slack {
		t.found.add("an actor was taken over %v after a death (p99 of %d)", quantile(alone, 0.99), len(alone))
	}
	if _, alone := t.observer.listTakeovers(drained, near); quantile(alone, 0.99) > t.o.slack {
		t.found.add("an actor was handed over %v after a drain (p99 of %d)", quantile(alone, 0.99), len(alone))
	}
	if left := listLeftovers(t.files.dir); len(left) > 0 {
		t.found.add("processes are left: %v", left)
	}
}

// takeoverMore is how much longer than the TTL a fault has effects.
const takeoverMore = 2 * time.Second

// judgeRun checks one run against the ledger and the double's book.
func (t *clusterJudge) judgeRun(r *finishedRun, effects map[string]int) {
	if r.result == nil {
		return // it was reported that it did not end
	}
	b := r.result.Budget
	requests := t.p.countOf(r.id)
	atLeast := int64(requests * (inputTokens + outputTokens))
	planned := t.o.kills+t.o.stops+t.o.points+t.o.zombies == 0 && !t.o.faultsServers()
	if r.canceled {
		t.judgeCanceled(r)
	}
	if b.Used > b.Limit || b.Overrun > 0 || b.Reserved != 0 || b.Used < atLeast {
		t.found.addOf(r.id, "run %s: the double counted %d tokens, and its budget says %+v", r.id, atLeast, b)
	}
	switch {
	case r.canceled && r.result.Reason != spec.Completed: // it was looked at
	case t.o.tokens < runTokens:
		if r.result.Reason != spec.Completed && r.result.Reason != spec.TokenBudget {
			t.found.addOf(r.id, "run %s could spend %d tokens, and ended %s: %s", r.id, t.o.tokens, r.result.Reason, r.result.Detail)
		}
	case r.result.Reason != spec.Completed:
		t.found.addOf(r.id, "run %s ended %s: %s", r.id, r.result.Reason, r.result.Detail)
	case len(effects) != t.o.effectsOfRun() && !t.o.control:
		t.found.addOf(r.id, "run %s completed with %d of %d effects", r.id, len(effects), t.o.effectsOfRun())
	case len(r.result.Agents) != 1+t.o.childrenOfRoot():
		t.found.addOf(r.id, "run %s has %d agents", r.id, len(r.result.Agents))
	case planned && (b.Unknown > 0 || r.asked > 0 || requests != t.o.requestsOfRun()):
		t.found.addOf(r.id, "run %s met drains only: %d requests of %d, %d charged for nothing, a person was asked %d times",
			r.id, requests, t.o.requestsOfRun(), b.Unknown, r.asked)
	}
}

// childrenOfRoot returns the number of children of the root: it delegates in its second turn.
func (o options) childrenOfRoot() int {
	if o.turns < 2 {
		return 0
	}
	return 2
}

// effectsOfRun returns the number of effects of a run without faults.
func (o options) effectsOfRun() int {
	if o.turns < 2 {
		return o.turns
	}
	return o.turns - 1 + o.childrenOfRoot()*helperTurns
}

// requestsOfRun returns the number of model calls of a run without faults.
func (o options) requestsOfRun() int { return o.turns + 1 + o.childrenOfRoot()*(helperTurns+1) }

// readLedger returns how often the ledger has each key of a run.
func (t *clusterJudge) readLedger() map[string]map[string]int {
	data, err := os.ReadFile(t.files.ledger)
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

// countDoubles counts the repeated effects: those that the user did not allow, and those
// that the user allowed.
func (t *clusterJudge) countDoubles() (doubles, allowed int) {
	for run, keys := range t.readLedger() {
		for key, n := range keys {
			more := min(n-1, t.load.approved[key])
			allowed += more
			doubles += n - 1 - more
			if n-1 > more && !t.o.control {
				t.found.addOf(run, "%s happened %d times, %d approved", key, n, t.load.approved[key])
			}
		}
	}
	return doubles, allowed
}

// printSummary prints the summary and returns the verdict.
func (t *clusterJudge) printSummary() error {
	doubles, allowed := t.countDoubles()
	reasons, asked, unknown, requests := map[spec.Reason]int{}, 0, int64(0), 0
	var took []time.Duration
	for _, r := range t.load.runs {
		if r.result != nil {
			reasons[r.result.Reason]++
			unknown += r.result.Budget.Unknown
		}
		asked += r.asked
		requests += t.p.countOf(r.id)
		took = append(took, r.took)
	}
	slices.Sort(took)
	fmt.Printf(`%d faults in %v; %d runs: %v, p50 %v, p99 %v, longest %v
effects: %d doubles, %d again by a person's word; a person was asked %d times
model: %d requests, %d malformed, %d without a break would be; %d tokens charged without an answer
entries that activations wrote after they were superseded, by kind: %v; all were as if they were not there, but for what tools returned
%s
%s%s%s%s%s%s%s%s%d problems
`, len(t.faults), time.Since(t.began).Round(time.Second), len(t.load.runs), reasons, quantile(took, 0.5), quantile(took, 0.99), quantile(took, 1),
		doubles, allowed, asked, requests, len(t.p.bad), t.o.requestsOfRun()*len(t.load.runs), unknown, t.stale, &t.verified,
		t.observer.takeoverLine(killed, t.o.ttl+takeoverMore), t.observer.takeoverLine(stopped, t.o.ttl+takeoverMore), t.observer.takeoverLine(drained, t.o.ttl+takeoverMore), t.observer.takeoverLine(pointed, t.o.ttl+takeoverMore), t.observer.takeoverLine(zombie, t.o.ttl+takeoverMore), t.zombies.describeGroups(), t.placementLine(), t.cancelLine(), len(t.found.list))
	switch {
	case t.o.broken:
		return t.found.checkControl(t.o.expectedProblems())
	case t.o.control && doubles == 0:
		return errBlind
	case t.o.control: // it shows that the judge sees; what else it saw is for the runs without a lie
		return nil
	case len(t.found.list) > 0:
		return errBroken
	}
	return nil
}

// takeoverLine reports how long actors were without a node after one kind of fault.
func (w *observer) takeoverLine(kind string, near time.Duration) string {
	all, alone := w.listTakeovers(kind, near)
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("from a %s to the first sign of life elsewhere: %d actors, p50 %v, p99 %v, longest %v; with no other fault near %d, p50 %v, p99 %v, longest %v\n",
		kind, len(all), quantile(all, 0.5), quantile(all, 0.99), quantile(all, 1), len(alone), quantile(alone, 0.5), quantile(alone, 0.99), quantile(alone, 1))
}

var (
	errBlind  = errors.New("the control found no double: this test cannot see any")
	errBroken = errors.New("a promise was broken")
)

// checkIndex checks that the list of runs has the same ends.
func (t *testCluster) checkIndex() {
	ctx, cancel := context.WithTimeout(context.Background(), spreadPatience)
	defer cancel()
	list, err := t.client.List(ctx)
	if err != nil {
		t.found.add("the list of runs: %v", err)
	}
	for _, i := range list {
		if i.State != client.RunFinished {
			t.found.add("run %s has ended, and the list has it %s", i.RunID, i.State)
		}
	}
}
