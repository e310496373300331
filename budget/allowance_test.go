package budget_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/troupe-run/troupe/budget"
)

// aheadLedger is what an agent records of its allowance, as package agent does.
type aheadLedger struct {
	left   budget.Allowance
	grant  int
	number int // of its newest reservation
	keep   budget.Amount
}

// TestAllowance: whatever attempts are begun under allowances, and whatever they use, the pool keeps its
// promise, holds what the agent counts as left, and keeps a closing turn for the agent at every end of
// an allowance (G1, G3).
//
//behaviour:shows G1
func TestAllowance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		price := drawPrice(t)
		l := &poolLedger{open: map[string]testReservation{}, next: map[string]int{}, who: []string{"a", "b"}}
		l.pool.Limit = budget.Limit{Tokens: rapid.Int64Range(20_000, 300_000).Draw(t, "tokens"), Nano: rapid.Int64Range(0, 30_000_000).Draw(t, "nano"),
			Calls: rapid.Int64Range(0, 400).Draw(t, "limit of calls")}
		agents := map[string]*aheadLedger{}
		for _, who := range l.who {
			pool, ok := l.pool.Admit(who, budget.Limit{Tokens: rapid.Int64Range(0, 200_000).Draw(t, "own")}, drawAsk(t, price))
			if !ok {
				return
			}
			l.pool, agents[who] = pool, &aheadLedger{}
		}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			who := rapid.SampledFrom(l.who).Draw(t, "who")
			agents[who].step(t, l, who, price)
			l.checkSums(t)
			if ahead := l.pool.Account("a").Ahead.Plus(l.pool.Account("b").Ahead); ahead != l.pool.Ahead {
				t.Fatalf("the accounts hold %v ahead, the pool says %v", ahead, l.pool.Ahead)
			}
		}
		for _, who := range l.who {
			l.pool = l.pool.TakeBack(who, budget.Amount{}).Leave(who)
		}
		if !l.pool.Held.Zero() || !l.pool.Ahead.Zero() || !l.pool.Kept.Zero() {
			t.Fatalf("all have left: %+v", l.pool)
		}
	})
}

// step does one thing that an agent may do.
func (a *aheadLedger) step(t *rapid.T, l *poolLedger, who string, price budget.Price) {
	ask := drawAsk(t, price)
	take, keep, covers := a.left.Covers(ask)
	switch {
	case a.grant != 0 && rapid.IntRange(0, 6).Draw(t, "returns") == 0:
		l.pool = l.pool.TakeBack(who, a.keep)
		a.checkKept(t, l, who)
		*a = aheadLedger{number: a.number}
	case a.grant != 0 && covers:
		a.number++
		a.keep = keep
		opened := l.pool.OpenAhead(who, a.grant, a.number, take)
		if got := opened.Account(who); got.Open != a.number || got.Held != take {
			t.Fatalf("an attempt that the allowance covers is not open: %+v, want %v", got, take)
		}
		used := budget.Amount{Tokens: rapid.Int64Range(0, take.Tokens).Draw(t, "used"), Nano: rapid.Int64Range(0, take.Nano).Draw(t, "paid"),
			Calls: rapid.Int64Range(0, take.Calls).Draw(t, "called")}
		pool := opened.Settle(who, a.number, used)
		if rapid.IntRange(0, 4).Draw(t, "lost") == 0 {
			pool, used = opened.Lose(who, a.number, 0), budget.Amount{Tokens: take.Tokens, Nano: take.Nano}
		}
		l.pool = pool.Refill(who, opened)
		if again := l.pool.OpenAhead(who, a.grant, a.number, take); again != l.pool {
			t.Fatalf("a settlement that comes twice opens reservation %d again", a.number)
		}
		a.left.Room = a.left.Room.Minus(used)
		if got := l.pool.Account(who).Ahead; got != a.left.Room {
			t.Fatalf("the pool holds %v for %s, which counts %v", got, who, a.left.Room)
		}
	default:
		a.ask(t, l, who, ask)
	}
}

// ask requests a reservation, which gives the allowance back, and settles it.
func (a *aheadLedger) ask(t *rapid.T, l *poolLedger, who string, ask budget.AttemptRequest) {
	l.pool = l.pool.TakeBack(who, a.keep)
	a.checkKept(t, l, who)
	*a = aheadLedger{number: a.number + 1}
	pool, g := l.pool.Reserve(who, a.number, ask)
	if g.Verdict != budget.Granted && g.Verdict != budget.Closing {
		l.pool = l.pool.Settle(who, a.number, budget.Amount{})
		return
	}
	l.pool = pool
	if next, granted, ok := l.pool.Grant(who, rapid.IntRange(1, 8).Draw(t, "ahead")); ok {
		if g.Verdict == budget.Closing {
			t.Fatalf("%s gets an allowance with a closing turn", who)
		}
		l.pool, a.left, a.grant = next, granted, a.number
		if l.pool.Tight() {
			t.Fatalf("an allowance of %v makes the pool tight: %+v", granted, l.pool)
		}
	}
	l.pool = l.pool.Settle(who, a.number, budget.Amount{Tokens: 1})
}

// checkKept checks that the pool keeps what the closing turn needs after the attempts under an allowance.
func (a *aheadLedger) checkKept(t *rapid.T, l *poolLedger, who string) {
	kept := l.pool.Account(who).Kept
	if over := a.keep.Over(kept); over.Tokens > 0 || over.Nano > 0 {
		t.Fatalf("%s needs %v for its closing turn, and %v is kept", who, a.keep, kept)
	}
}

// TestLostAllowance: what an agent that is gone has begun is unknown, so its allowance is spent in full (G1).
func TestLostAllowance(t *testing.T) {
	k := budget.AttemptRequest{Input: 100, Output: 1000, OutputMin: 64, Closing: 100}
	p, _ := budget.Pool{Limit: budget.Limit{Tokens: 100_000}}.Admit("a", budget.Limit{}, k)
	p, _ = p.Reserve("a", 1, k)
	p, granted, ok := p.Grant("a", 8)
	if !ok {
		t.Fatal("no allowance from an ample pool")
	}
	p = p.Settle("a", 1, budget.Amount{Tokens: 300}).Leave("a")
	if want := granted.Room.Tokens; p.Unknown.Tokens != want || p.Spent.Tokens != want+300 || !p.Held.Zero() {
		t.Errorf("unknown %v, spent %v, held %v; want %d unknown", p.Unknown, p.Spent, p.Held, want)
	}
}
