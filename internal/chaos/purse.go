package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/trap"
	"github.com/troupe-run/troupe/mailbox/jetstream"
)

// A purse (FM22): so many agents on all nodes reserve out of one limit, which is too
// small for all of them to think at once, and nodes die between a reservation, its
// call and its settlement.
const (
	purseAgents = 64
	purseTurns  = 16 // in which an agent calls a tool; then it ends
	purseCalls  = 100_000
	purseTokens = 250_000
	purseDeaths = 4 // of nodes, for each purse
)

// spender is the agent of purses. Its tool has no effect: nobody is asked after a crash.
const spender = `---
name: spender
description: spends
tools: look, delegate
x-troupe:
  delegates: [spender]
  tools:
    - name: look
      description: looks
      effect: read
      command: "echo seen"
      input_schema: {type: object, properties: {n: {type: integer}}}
---
agent: spender
`

// pursePlaces are those around a reservation, its call and its settlement.
var pursePlaces = []string{
	trap.LetterBefore, trap.LetterSent, trap.LetterAcked, trap.LetterBefore + ".reserve", trap.LetterSent + ".reserve", trap.LetterAcked + ".reserve",
	trap.ModelBefore, trap.ModelAfter, trap.OwnBefore + ".replied", trap.OwnSent + ".replied", trap.OwnAcked + ".replied", trap.OwnRead + ".replied",
}

var spends = regexp.MustCompile(`(spend|lead) for ` + tag)

// spend answers an agent of a purse: the first delegates to all others at once.
func (p *provider) spend(w http.ResponseWriter, body []byte, taken int, run string) bool {
	found := spends.FindSubmatch(body)
	if found == nil {
		return false
	}
	switch {
	case string(found[1]) == "lead" && taken == 0:
		tasks := make([]string, purseAgents-1)
		for i := range tasks {
			tasks[i] = fmt.Sprintf(`{"agent":"spender","task":"spend for %s%s"}`, tag, run)
		}
		p.delegates(w, tasks)
	case string(found[1]) == "lead" || taken >= purseTurns:
		p.calls(w, taken, "", "")
	default:
		p.calls(w, taken, "look", fmt.Sprintf(`{"n":%d}`, taken))
	}
	return true
}

// playPurses lets purses be spent, one after the other.
func (t *theatre) playPurses() {
	for name, text := range map[string]string{t.stage.agent("spender"): spender, t.stage.ledger: ""} { // no effects
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.found.add("%v", err)
			return
		}
	}
	random := rand.New(rand.NewPCG(t.o.seed, 0))
	fmt.Printf("seed %d: purses of %d agents on %d nodes, TTL %v\n", t.o.seed, purseAgents, t.o.nodes, t.o.ttl)
	asked := 0
	for n := range t.o.purses {
		ops, err := t.purse(n+1, random)
		if err != nil {
			t.found.add("purse %d: %v", n+1, err)
		}
		asked += ops
	}
	t.nodes.settle()
	fmt.Printf("%d reservations, settlements and losses in all\n", asked)
}

// purse lets one be spent while nodes die, and judges it.
func (t *theatre) purse(no int, random *rand.Rand) (ops int, err error) {
	id := client.NewID()
	ctx, end := context.WithTimeout(context.Background(), 2*runPatience)
	defer end()
	req := t.load.request(id)
	req.Agent, req.Prompt, req.MaxTokens, req.MaxToolCalls = "spender", "lead for "+tag+id, purseTokens, purseCalls
	req.MaxDepth, req.MaxAgents, req.MaxChildren = 2, purseAgents, purseAgents
	if err := again(ctx, func() error { _, err := t.client.Run(ctx, req); return err }); err != nil {
		return 0, err
	}
	type outcome struct {
		info client.RunInfo
		err  error
	}
	ended := make(chan outcome, 1)
	go func() {
		info, err := t.defused(ctx, id)
		ended <- outcome{info, err}
	}()
	var e outcome
	died := 0
	for over := false; !over; {
		select {
		case e = <-ended:
			over = true
		case <-time.After(t.o.gap):
			if died < purseDeaths {
				died += t.robbed(random)
			}
		}
	}
	if e.err != nil {
		return 0, fmt.Errorf("%w; it stands so: %s", e.err, t.load.stands(id))
	}
	var f *folded
	if err := t.post(func(post *jetstream.Post) (err error) { f, err = fold(post, id); return err }); err != nil {
		return 0, err
	}
	r := e.info.Result
	s := spent{problems: f.problems, reason: r.Reason, agents: len(r.Agents), waited: f.peak.waiting, died: died, granted: f.granted, replied: f.replied, asked: t.p.counted(id),
		limit: r.Budget.Limit, used: r.Budget.Used, held: r.Budget.Reserved, overrun: r.Budget.Overrun, unknown: r.Budget.Unknown}
	for _, problem := range s.judge() {
		t.found.of(id, "purse %d: %s", no, problem)
	}
	fmt.Printf("purse %d: %s; %d agents, of whom at most %d waited at once; %d leases, %d requests, %d replies; %d nodes died; %d of %d tokens used, %d of them unknown\n",
		no, r.Reason, s.agents, s.waited, s.granted, s.asked, s.replied, died, s.used, s.limit, s.unknown)
	return 2 * s.granted, nil
}

// robbed kills a node at one of the places, if anybody comes by there.
func (t *theatre) robbed(random *rand.Rand) int {
	b := &blow{kind: pointed, no: len(t.blows) + 1, place: pursePlaces[random.IntN(len(pursePlaces))]}
	m := t.nodes.victim(random)
	t.nodes.set(m, false)
	text, err := t.lure(m, b.place, trap.Kill)
	if err != nil {
		if !errors.Is(err, errNobody) {
			t.found.add("%v", err)
		}
		t.nodes.set(m, true)
		return 0
	}
	b.node, b.at = m.name, time.Now()
	b.caught, b.call, b.life = caughtAt(b.place, text)
	t.blows = append(t.blows, b)
	t.nodes.deal(m, b)
	return 1
}

// spent is what the logs of a purse, its result and the double's book say.
type spent struct {
	problems                            []string // of its logs, at any step
	reason                              agent.Reason
	agents, waited, died                int
	granted, replied, asked             int // leases, replies, and requests that the double counted
	limit, used, held, overrun, unknown int64
}

// judge says what of it breaks a promise.
func (s spent) judge() (bad []string) {
	wrong := func(is bool, format string, args ...any) {
		if is {
			bad = append(bad, fmt.Sprintf(format, args...))
		}
	}
	bad = append(bad, s.problems...)
	book := int64(s.asked * (inputTokens + outputTokens))
	wrong(s.reason != agent.Completed && s.reason != agent.TokenBudget, "it ended %s", s.reason)
	wrong(s.agents != purseAgents, "%d agents of %d", s.agents, purseAgents)
	wrong(s.waited == 0, "nobody ever waited for tokens: there was no race")
	wrong(s.died == 0, "no node died")
	wrong(s.asked > s.granted, "%d requests were sent under %d leases", s.asked, s.granted)
	wrong(s.used > s.limit || s.overrun > 0, "%d tokens of %d are used, %d of them beyond it", s.used, s.limit, s.overrun)
	wrong(s.held != 0, "%d tokens are still held", s.held)
	wrong(book > s.used, "the double counted %d tokens, and %d are used", book, s.used)
	known := int64(s.replied * (inputTokens + outputTokens))
	wrong(s.used-s.unknown != known, "%d replies cost %d tokens, and %d of %d used are known", s.replied, known, s.used-s.unknown, s.used)
	return bad
}
