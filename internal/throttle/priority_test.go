package throttle_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/troupe-run/troupe/internal/throttle"
)

var allPriorities = []throttle.Priority{throttle.PriorityHigh, throttle.PriorityNormal, throttle.PriorityLow}

// Of ten turns, seven are of high priority, two of normal and one of low, while runs of all priorities wait.
func TestTurnsOfPriorities(t *testing.T) {
	p := newDriver(t, throttle.Limits{InitialWindow: 1})
	p.requestReserved(0, "first", "first")
	for i := range 60 {
		for _, prio := range allPriorities {
			p.applyEvent(throttle.CallRequested{Who: fmt.Sprint(prio, i), Run: fmt.Sprint(prio, i%3), Priority: prio})
		}
	}
	order, call := "", "first"
	for range 40 {
		who := admittedCallers(p.answerCall(1, call, throttle.OK, 0))
		if len(who) != 1 {
			t.Fatalf("admitted %v", who)
		}
		order += who[0][:1]
		p.applyEvent(throttle.CallRequested{At: 1, Who: who[0], Call: who[0], Run: "any", Reserved: true})
		call = who[0]
	}
	assertSame(t, "the order", order, "hhhhnhhhhlnhhhhnhhhlnhhhhnhhhlnhhhhnhhhl")
}

// turnQueue is a throttle with one call at a time, at which runs of all priorities wait.
type turnQueue struct {
	*testDriver
	flying string
	asked  int
}

func newTurnQueue(t *testing.T) *turnQueue {
	q := &turnQueue{testDriver: newDriver(t, throttle.Limits{InitialWindow: 1}), flying: "first"}
	q.requestReserved(0, "first", "first")
	return q
}

// wait has runs wait, each for one call, and returns the last caller.
func (q *turnQueue) wait(prio throttle.Priority, n int) (who string) {
	for range n {
		q.asked++
		who = fmt.Sprint(prio, q.asked)
		q.applyEvent(throttle.CallRequested{Who: who, Call: who, Run: who, Priority: prio, Reserved: true})
	}
	return who
}

// turns ends calls, and returns the first letters of the priorities that have the next turns.
func (q *turnQueue) turns(n int) (order string) {
	for range n {
		for _, who := range admittedCallers(q.answerCall(0, q.flying, throttle.OK, 0)) {
			q.flying = who
			order += who[:1]
		}
	}
	return order
}

// A run of low priority that is alone has all turns, and they do not count against it later.
func TestLoneLowRunHasAllTurns(t *testing.T) {
	q := newTurnQueue(t)
	q.wait(throttle.PriorityLow, 30)
	assertSame(t, "the order of a lone priority", q.turns(29), strings.Repeat("l", 29))
	q.wait(throttle.PriorityHigh, 12)
	assertSame(t, "the order with another one", q.turns(13), "hhhhhhhhhlhhh")
}

// A caller that gives up and comes back does not start anew: the turns that its priority has left to others are kept.
// Turns while none of its priority waits do not count.
func TestTurnsLeftToOthersAreKept(t *testing.T) {
	q := newTurnQueue(t)
	low := q.wait(throttle.PriorityLow, 1)
	q.wait(throttle.PriorityHigh, 20)
	order := q.turns(5)
	q.applyEvent(throttle.CallerLeft{Who: low})
	order += q.turns(5)
	q.wait(throttle.PriorityLow, 1)
	order += q.turns(6)
	assertSame(t, "the order", order, "hhhhh"+"hhhhh"+"hhhhlh")
}

// A run without a priority, or with a word that is none, is one of normal priority; a word that a user writes is checked.
func TestUnknownPriorityIsNormal(t *testing.T) {
	p := newDriver(t, throttle.Limits{InitialWindow: 1})
	p.requestReserved(0, "first", "first")
	for i, prio := range []throttle.Priority{"", "urgent", throttle.PriorityNormal, throttle.PriorityHigh} {
		p.applyEvent(throttle.CallRequested{Who: fmt.Sprint(i), Run: fmt.Sprint(i), Priority: prio})
	}
	var order []string
	for call := "first"; len(order) < 4; call = order[len(order)-1] {
		order = append(order, admittedCallers(p.answerCall(1, call, throttle.OK, 0))...)
		who := order[len(order)-1]
		p.applyEvent(throttle.CallRequested{At: 1, Who: who, Call: who, Run: who, Reserved: true})
	}
	assertSame(t, "the order", order, []string{"3", "0", "1", "2"})
	for word, want := range map[string]throttle.Priority{"": throttle.PriorityNormal, "low": throttle.PriorityLow, "high": throttle.PriorityHigh, "High": "", "1": ""} {
		if got, err := throttle.ParsePriority(word); got != want || (want == "") != errors.Is(err, throttle.ErrPriority) {
			t.Errorf("%q: %q, %v", word, got, err)
		}
	}
}

// turnJudge watches the turns of runs with priorities.
type turnJudge struct {
	*testDriver
	rt      *rapid.T
	waiting map[string]bool                              // callers
	passed  map[throttle.Priority]int                    // turns of others while a priority waits
	most    map[throttle.Priority]int                    // how many of them there may be
	served  map[string]map[string]int                    // by run, the turns of each other run of its priority while it waits
	of      func(who string) (throttle.Priority, string) // priority and run of a caller
}

func (j *turnJudge) apply(e throttle.Event) (admitted []string) {
	for _, fx := range j.applyEvent(e) {
		a, ok := fx.(throttle.AdmitCaller)
		if !ok {
			continue
		}
		admitted = append(admitted, a.Who)
		if !j.waiting[a.Who] {
			continue // it comes with its ticket
		}
		delete(j.waiting, a.Who)
		j.countTurn(a.Who)
	}
	return admitted
}

// countTurn checks that no priority and no run waits for more turns of others than the rule says.
func (j *turnJudge) countTurn(who string) {
	prio, run := j.of(who)
	j.passed[prio] = 0
	delete(j.served, run)
	priorities, runs := map[throttle.Priority]bool{}, map[string]bool{}
	for other := range j.waiting {
		p, r := j.of(other)
		priorities[p] = true
		runs[r] = runs[r] || p == prio && r != run
	}
	for p := range priorities {
		if p == prio {
			continue
		}
		if j.passed[p]++; j.passed[p] > j.most[p] {
			j.rt.Fatalf("%d turns of others while runs of priority %s wait", j.passed[p], p)
		}
	}
	for r, same := range runs {
		if !same {
			continue
		}
		if j.served[r] == nil {
			j.served[r] = map[string]int{}
		}
		if j.served[r][run]++; j.served[r][run] > 1 {
			j.rt.Fatalf("%s has a second turn while %s waits", run, r)
		}
	}
}

// Whoever comes and goes: a priority that waits has a turn after as many turns of others as the limits say (low priority
// nine, normal five, because one may be of low priority, and high two), and its runs have one turn each before one has two.
//
//behaviour:shows G6
func TestPrioritiesStarveNoRun(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := throttle.Limits{InitialWindow: rapid.IntRange(1, 2).Draw(rt, "window"), TicketTTL: 1 << 40, NormalTurns: 4, LowTurns: 9}
		if rapid.Bool().Draw(rt, "few turns") {
			l.NormalTurns, l.LowTurns = 2, 3
		}
		j := &turnJudge{testDriver: newDriver(t, l), rt: rt, most: map[throttle.Priority]int{throttle.PriorityHigh: 2, throttle.PriorityNormal: l.NormalTurns + 1, throttle.PriorityLow: l.LowTurns},
			waiting: map[string]bool{}, passed: map[throttle.Priority]int{}, served: map[string]map[string]int{}}
		callers := make([]string, 24) // two of each run, four runs of each priority
		for i := range callers {
			callers[i] = fmt.Sprint(allPriorities[i%3], i%12, "-", i)
		}
		j.of = func(who string) (throttle.Priority, string) {
			run, _, _ := strings.Cut(who, "-")
			return throttle.Priority(strings.TrimRight(run, "0123456789")), run
		}
		var flying []string
		busy := map[string]bool{}
		for range rapid.IntRange(1, 300).Draw(rt, "steps") {
			who := rapid.SampledFrom(callers).Draw(rt, "who")
			prio, run := j.of(who)
			var admitted []string
			switch {
			case len(flying) > 0 && rapid.IntRange(0, 2).Draw(rt, "end") == 0:
				admitted = j.apply(throttle.CallAnswered{Call: flying[0], Outcome: throttle.OK})
				busy[flying[0]], flying = false, flying[1:]
			case j.waiting[who] && rapid.IntRange(0, 9).Draw(rt, "leaves") == 0:
				delete(j.waiting, who)
				busy[who] = false
				if !slices.ContainsFunc(slices.Collect(maps.Keys(j.waiting)), func(other string) bool { _, r := j.of(other); return r == run }) {
					delete(j.served, run) // the run waits no more
				}
				admitted = j.apply(throttle.CallerLeft{Who: who})
			case !busy[who]:
				if !slices.ContainsFunc(slices.Collect(maps.Keys(j.waiting)), func(other string) bool { p, _ := j.of(other); return p == prio }) {
					delete(j.passed, prio) // the priority begins to wait
				}
				busy[who], j.waiting[who] = true, true
				admitted = j.apply(throttle.CallRequested{Who: who, Run: run, Priority: prio})
			}
			for i := 0; i < len(admitted); i++ {
				p, r := j.of(admitted[i])
				admitted = slices.Concat(admitted, slices.DeleteFunc(j.apply(throttle.CallRequested{Who: admitted[i], Call: admitted[i], Run: r, Priority: p, Reserved: true}),
					func(other string) bool { return other == admitted[i] }))
				flying = append(flying, admitted[i])
			}
		}
	})
}
