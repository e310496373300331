package supervisor_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// What a step costs must not follow the number of members (PROTOCOL P24). The
// tests count what is allocated, which no load of the machine changes; the
// benchmark prints how many reservations one supervisor takes a second:
//
//	go test ./supervisor -run '^$' -bench Reservation
//
// Through real logs: go test ./actors -run '^$' -bench Supervisor -benchtime 1x

// crowdedRun is a run with many members.
func crowdedRun(tb testing.TB, members int, tokens int64) supervisor.State {
	tb.Helper()
	s, _ := supervisor.Step(supervisor.State{}, supervisor.Input{Fact: supervisor.Opened{Run: "r", Goal: "Compare.", Root: "lead",
		Definitions: []supervisor.Definition{{Name: "lead"}}, Tools: []model.ToolSpec{{Name: "delegate"}},
		Limits: spec.RunLimits{Tokens: tokens, Agents: 1 << 20, Children: 1 << 20}}})
	for i := range members {
		s, _ = supervisor.Step(s, supervisor.Input{From: spec.Root, Fact: agent.Delegate{Call: "1-0", Child: memberID(i), Goal: "Look."}})
	}
	if s.Count() != members+1 {
		tb.Fatalf("%d of %d joined", s.Count(), members+1)
	}
	return s
}

func memberID(i int) spec.ID { return spec.ID(fmt.Sprintf("root-%d-0", i)) }

func reserveEvent(who spec.ID, reservation int) supervisor.Input {
	return supervisor.Input{From: who, Fact: agent.Reserve{Reservation: reservation, Turn: reservation,
		Request: budget.AttemptRequest{Input: 100, Output: 1000, OutputMin: 64, Closing: 100}}}
}

func settleEvent(who spec.ID, reservation int) supervisor.Input {
	return supervisor.Input{From: who, Fact: agent.Settle{Reservation: reservation, Used: budget.Amount{Tokens: 300}}}
}

// aheadEvent is a request for a reservation with an allowance.
func aheadEvent(who spec.ID, reservation int) supervisor.Input {
	e := reserveEvent(who, reservation)
	f := e.Fact.(agent.Reserve)
	f.Ahead = agent.GrantsAheadMax
	e.Fact = f
	return e
}

// settleAheadEvent settles the first attempt under the allowance of reservation 1.
func settleAheadEvent(who spec.ID, used int64) supervisor.Input {
	return supervisor.Input{From: who, Fact: agent.Settle{Reservation: 2, Under: 1, Taken: budget.Amount{Tokens: 1200}, Used: budget.Amount{Tokens: used}}}
}

// stepAll takes every event from the State that the one before it left.
func stepAll(s supervisor.State, events ...supervisor.Input) (supervisor.State, []supervisor.Effect) {
	var all []supervisor.Effect
	for _, e := range events {
		var fx []supervisor.Effect
		var out supervisor.Output
		s, out = supervisor.Step(s, e)
		fx = out.Effects
		all = append(all, fx...)
	}
	return s, all
}

// countAllocations is how many objects and bytes one call of f takes, by the least of a few counts:
// the runtime itself may allocate beside it.
func countAllocations(f func()) (objects, bytes float64) {
	const counts, calls = 5, 100
	for i := range counts {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range calls {
			f()
		}
		runtime.ReadMemStats(&after)
		o, b := float64(after.Mallocs-before.Mallocs)/calls, float64(after.TotalAlloc-before.TotalAlloc)/calls
		if i == 0 {
			objects, bytes = o, b
		}
		objects, bytes = min(objects, o), min(bytes, b)
	}
	return objects, bytes
}

// TestStepCostGrowsLittleWithMembers: what any message of a member costs the supervisor of 10,000 members is
// at most three times what it costs that of 100 (P24).
//
//behaviour:shows G5
func TestStepCostGrowsLittleWithMembers(t *testing.T) {
	const few, many = 100, 10_000
	const roomy, short = 0, 1100 // tokens for each member: the second covers its closing turn, and little beside
	cases := map[string]struct {
		tokens  int64
		crowded bool // most of them wait
		ahead   bool // all of them hold an allowance
		events  []supervisor.Input
	}{
		"a reservation and its settlement": {tokens: roomy, events: []supervisor.Input{reserveEvent(memberID(50), 1), settleEvent(memberID(50), 1)}},
		"a delegation and its end": {tokens: roomy, events: []supervisor.Input{
			{From: spec.Root, Fact: agent.Delegate{Call: "1-0", Child: "root-x-0", Goal: "Look."}},
			{From: "root-x-0", Fact: agent.Finish{Outcome: spec.Outcome{Reason: spec.Completed, Text: "Found."}}}}},
		"a stop that is proposed":                               {tokens: roomy, events: []supervisor.Input{{From: memberID(50), Fact: agent.ProposeStop{Proposal: 1, Text: "Found."}}}},
		"a question and its answer":                             {tokens: roomy, events: []supervisor.Input{{From: memberID(50), Fact: agent.Park{Query: "q"}}, {From: memberID(50), Fact: agent.Unpark{Query: "q"}}}},
		"a place in the queue, and the turn of the first in it": {tokens: short, crowded: true, events: []supervisor.Input{settleEvent(memberID(0), 1), reserveEvent(memberID(0), 2)}},
		"an allowance that is used and given back": {tokens: roomy, ahead: true, events: []supervisor.Input{settleEvent(memberID(50), 1), settleAheadEvent(memberID(50), 300),
			aheadEvent(memberID(50), 3)}},
		"the first allowances that are recalled": {tokens: roomy, ahead: true, events: []supervisor.Input{settleEvent(memberID(50), 1), settleAheadEvent(memberID(50), 5000)}},
	}
	for name, c := range cases {
		var told []int // how many effects, among few and among many: it must be the same work
		cost := func(members int) (objects, bytes float64) {
			s := crowdedRun(t, members, c.tokens*int64(members))
			if c.crowded {
				s, _ = stepAll(s, everyoneAsks(members)...)
				p := s.Pool
				left := spec.RunLimits{Tokens: p.Spent.Plus(p.Held).Plus(p.Kept).Tokens + 1000} // the same in each crowd
				s, _ = stepAll(s, supervisor.Input{Fact: supervisor.LimitSet{Limits: left, Patch: true}})
				if s.Waiting() < members/2 {
					t.Fatalf("%s: %d wait", name, s.Waiting())
				}
			}
			if c.ahead {
				for i := range members {
					s, _ = stepAll(s, aheadEvent(memberID(i), 1))
				}
			}
			_, fx := stepAll(s, c.events...)
			told = append(told, len(fx))
			return countAllocations(func() { stepAll(s, c.events...) })
		}
		fewObjects, fewBytes := cost(few)
		objects, bytes := cost(many)
		if told[0] != told[1] {
			t.Fatalf("%s: %d effects", name, told)
		}
		t.Logf("%s: %.0f objects and %.0f bytes among %d members, %.0f and %.0f among %d", name, fewObjects, fewBytes, few, objects, bytes, many)
		if objects > 3*fewObjects || bytes > 3*fewBytes {
			t.Errorf("%s: %.0f objects and %.0f bytes among %d members, %.0f and %.0f among %d", name, fewObjects, fewBytes, few, objects, bytes, many)
		}
	}
}

// everyoneAsks is a reservation of each of the members.
func everyoneAsks(members int) []supervisor.Input {
	events := make([]supervisor.Input, members)
	for i := range events {
		events[i] = reserveEvent(memberID(i), 1)
	}
	return events
}

// BenchmarkReservation prints what one supervisor takes a second when nothing
// else is in the way: a reservation is asked for, granted, and settled.
func BenchmarkReservation(b *testing.B) {
	for _, members := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprintf("members=%d", members), func(b *testing.B) {
			s := crowdedRun(b, members, 0)
			asked, done := everyoneAsks(members), make([]supervisor.Input, members)
			for i := range done {
				done[i] = settleEvent(memberID(i), 1)
			}
			b.ReportAllocs()
			n := 0
			next := s
			for b.Loop() {
				if n%members == 0 { // the same reservations again, from the same past
					next = s
				}
				next, _ = supervisor.Step(next, asked[n%members])
				next, _ = supervisor.Step(next, done[n%members])
				n++
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "reservations/s")
		})
	}
}
