package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/failpoint"
	"github.com/troupe-run/troupe/internal/logstore/jetstream"
)

// A budget race (FM22): many agents on all nodes reserve out of one limit, which is too
// small for all of them to call models at once, and nodes die between a reservation, its
// call and its settlement.
const (
	raceAgents = 64
	raceTurns  = 64 // in which an agent calls a tool; then it ends
	raceCalls  = 100_000
	raceTokens = 640_000
	raceDeaths = 4 // of nodes, in each race
)

// spender is the agent of budget races. Its tool has no effect, so the user is never asked after a crash, and starts no
// process, so that the race is about reservations.
const spender = `---
name: spender
description: spends
tools: read_file, delegate
maxTurns: 80
x-troupe:
  delegates: [spender]
---
Read, and delegate the task.
`

// raceLines is the file of which a spender reads another line in each turn.
const raceLines = "lines"

// racePlaces are the named places around a reservation, its call and its settlement.
var racePlaces = []string{
	failpoint.OutboxBefore, failpoint.OutboxSent, failpoint.OutboxAcked, failpoint.OutboxBefore + ".reserve", failpoint.OutboxSent + ".reserve", failpoint.OutboxAcked + ".reserve",
	failpoint.ModelBefore, failpoint.ModelAfter, failpoint.OwnBefore + ".replied", failpoint.OwnSent + ".replied", failpoint.OwnAcked + ".replied", failpoint.OwnRead + ".replied",
}

var spends = regexp.MustCompile(`(spend|lead) for ` + tag)

// delegateAll answers an agent of a budget race: the first one delegates to all others at once.
func (p *provider) delegateAll(w http.ResponseWriter, body []byte, taken int, run string) bool {
	found := spends.FindSubmatch(body)
	if found == nil {
		return false
	}
	switch {
	case string(found[1]) == "lead" && taken == 0:
		tasks := make([]string, raceAgents-1)
		for i := range tasks {
			tasks[i] = fmt.Sprintf(`{"agent":"spender","task":"spend for %s%s"}`, tag, run)
		}
		p.streamDelegation(w, tasks)
	case string(found[1]) == "lead" || taken >= raceTurns:
		p.streamCall(w, taken, "", "")
	default:
		p.streamCall(w, taken, "read_file", fmt.Sprintf(`{"path":%q,"offset":%d,"limit":1}`, raceLines, taken+1))
	}
	return true
}

// budgetRaces is the scenario in which many agents reserve out of one limit while nodes die.
type budgetRaces struct{ *testCluster }

// run runs the budget races one after the other.
func (t *budgetRaces) run() {
	lines := strings.Repeat("line\n", raceTurns+1)
	for name, text := range map[string]string{t.files.agentFile("spender"): spender, filepath.Join(t.files.workDir(), raceLines): lines, t.files.ledger: ""} { // no effects
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.found.add("%v", err)
			return
		}
	}
	random := rand.New(rand.NewPCG(t.o.seed, 0))
	fmt.Printf("seed %d: budget races of %d agents on %d nodes, TTL %v\n", t.o.seed, raceAgents, t.o.nodes, t.o.ttl)
	asked := 0
	for n := range t.o.races {
		ops, err := t.runOne(n+1, random)
		if err != nil {
			t.found.add("budget race %d: %v", n+1, err)
		}
		asked += ops
	}
	t.nodes.awaitFaults()
	fmt.Printf("%d reservations, settlements and losses in all\n", asked)
}

// runOne runs one budget race while nodes die, and judges it.
func (t *budgetRaces) runOne(no int, random *rand.Rand) (ops int, err error) {
	id := client.NewID()
	ctx, end := context.WithTimeout(context.Background(), 2*runPatience)
	defer end()
	req := t.load.newRequest(id)
	req.Agent, req.Prompt, req.MaxTokens, req.MaxToolCalls = "spender", "lead for "+tag+id, raceTokens, raceCalls
	req.MaxDepth, req.MaxAgents, req.MaxChildren = 2, raceAgents, raceAgents
	if err := repeatRequest(ctx, func() error { _, err := t.client.Run(ctx, req); return err }); err != nil {
		return 0, err
	}
	type outcome struct {
		info client.RunInfo
		err  error
	}
	ended := make(chan outcome, 1)
	go func() {
		info, err := t.load.waitAnswering(ctx, id)
		ended <- outcome{info, err}
	}()
	var e outcome
	died := 0
	for over := false; !over; {
		select {
		case e = <-ended:
			over = true
		case <-time.After(t.o.gap):
			if died < raceDeaths {
				died += t.killOne(random)
			}
		}
	}
	if e.err != nil {
		return 0, fmt.Errorf("%w; it stands so: %s", e.err, t.load.lastEntries(id))
	}
	var f *replayedRun
	if err := t.withPost(func(post *jetstream.Post) (err error) { f, err = replayRun(post, id); return err }); err != nil {
		return 0, err
	}
	r := e.info.Result
	s := raceOutcome{problems: f.problems, reason: r.Reason, agents: len(r.Agents), waited: f.peak.waiting, died: died, granted: f.granted, replied: f.replied, asked: t.p.countOf(id),
		limit: r.Budget.Limit, used: r.Budget.Used, held: r.Budget.Reserved, overrun: r.Budget.Overrun, unknown: r.Budget.Unknown}
	for _, problem := range s.listProblems() {
		t.found.addOf(id, "budget race %d: %s", no, problem)
	}
	fmt.Printf("budget race %d: %s; %d agents, of whom at most %d waited at once; %d reservations, %d requests, %d replies; %d nodes died; %d of %d tokens used, %d of them unknown\n",
		no, r.Reason, s.agents, s.waited, s.granted, s.asked, s.replied, died, s.used, s.limit, s.unknown)
	return 2 * s.granted, nil
}

// killOne kills a node at one of the places, if an actor gets there.
func (t *budgetRaces) killOne(random *rand.Rand) int {
	b := &fault{kind: pointed, no: len(t.faults) + 1, place: racePlaces[random.IntN(len(racePlaces))]}
	m := t.nodes.pickVictim(random)
	t.nodes.setReady(m, false)
	text, err := t.files.springTrap(m.name, b.place, failpoint.Kill)
	if err != nil {
		if !errors.Is(err, errNobody) {
			t.found.add("%v", err)
		}
		t.nodes.setReady(m, true)
		return 0
	}
	b.node, b.at = m.name, time.Now()
	b.caught, b.call, b.activation = caughtAt(b.place, text)
	t.faults = append(t.faults, b)
	t.nodes.injectFault(m, b)
	return 1
}

// raceOutcome collects facts from the logs of a budget race, its result and the record of the double.
type raceOutcome struct {
	problems                            []string // of its logs, at any step
	reason                              spec.Reason
	agents, waited, died                int
	granted, replied, asked             int // reservations, replies, and requests that the double counted
	limit, used, held, overrun, unknown int64
}

// listProblems lists the broken promises.
func (s raceOutcome) listProblems() (bad []string) {
	wrong := func(is bool, format string, args ...any) {
		if is {
			bad = append(bad, fmt.Sprintf(format, args...))
		}
	}
	bad = append(bad, s.problems...)
	book := int64(s.asked * (inputTokens + outputTokens))
	wrong(s.reason != spec.Completed && s.reason != spec.TokenBudget, "it ended %s", s.reason)
	wrong(s.agents != raceAgents, "%d agents of %d", s.agents, raceAgents)
	wrong(s.waited == 0, "nobody ever waited for tokens: there was no race")
	wrong(s.died == 0, "no node died")
	wrong(s.asked > s.granted, "%d requests were sent under %d reservations", s.asked, s.granted)
	wrong(s.used > s.limit || s.overrun > 0, "%d tokens of %d are used, %d of them beyond it", s.used, s.limit, s.overrun)
	wrong(s.held != 0, "%d tokens are still held", s.held)
	wrong(book > s.used, "the double counted %d tokens, and %d are used", book, s.used)
	known := int64(s.replied * (inputTokens + outputTokens))
	wrong(s.used-s.unknown != known, "%d replies cost %d tokens, and %d of %d used are known", s.replied, known, s.used-s.unknown, s.used)
	return bad
}
