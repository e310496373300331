package budget_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/model"
)

// poolLedger is a pool and what happened to it: enough to check it from outside.
type poolLedger struct {
	pool budget.Pool
	who  []string
	// open reservations with what they may cost at most
	open map[string]testReservation
	next map[string]int
}

type testReservation struct {
	number int
	most   budget.Amount
}

func drawPrice(t *rapid.T) budget.Price {
	in := rapid.Int64Range(0, 20).Draw(t, "price")
	p := budget.Price{Known: true, Input: in, Output: in * 5, CacheRead: in / 10, CacheWrite: in * 2}
	if above := rapid.Int64Range(-2000, 2000).Draw(t, "above"); above > 0 { // a longer prompt may cost less, too
		long := rapid.Int64Range(0, 40).Draw(t, "long")
		p.Long = budget.Tier{Above: above, Input: long, Output: long * 4, CacheRead: long / 10, CacheWrite: long}
	}
	return p
}

func drawAsk(t *rapid.T, p budget.Price) budget.AttemptRequest {
	return budget.AttemptRequest{Input: rapid.Int64Range(1, 3000).Draw(t, "input"), Output: rapid.Int64Range(64, 4000).Draw(t, "output"), OutputMin: 64,
		Closing: rapid.Int64Range(1, 700).Draw(t, "closing"), Calls: rapid.Int64Range(0, 64).Draw(t, "calls"), Price: p,
		Final: rapid.IntRange(0, 9).Draw(t, "final") == 0}
}

// checkSums: the sums are the sums of the accounts, nothing is negative, and
// nothing but an overrun is committed beyond the limit.
func (l *poolLedger) checkSums(t *rapid.T) {
	var spent, held, kept, carved budget.Amount
	for _, who := range l.who {
		a := l.pool.Account(who)
		spent, held, kept = spent.Plus(a.Spent), held.Plus(a.InUse()), kept.Plus(a.Kept)
		carved = carved.Plus(a.Share.Over(a.Spent.Plus(a.InUse()).Plus(a.Kept).Plus(a.Below)))
		if a.Open != 0 && a.Open <= a.Closed {
			t.Fatalf("%s has reservation %d open, and closed up to %d", who, a.Open, a.Closed)
		}
	}
	if spent != l.pool.Spent || held != l.pool.Held || kept != l.pool.Kept {
		t.Fatalf("accounts %v+%v+%v, pool %v+%v+%v", spent, held, kept, l.pool.Spent, l.pool.Held, l.pool.Kept)
	}
	for _, who := range l.who {
		var below budget.Amount
		for _, other := range l.who {
			if a := l.pool.Account(other); a.Sharer == who {
				used := a.Spent.Plus(a.InUse()).Plus(a.Kept).Plus(a.Below)
				below = below.Plus(used).Plus(a.Share.Over(used))
			}
		}
		if got := l.pool.Account(who).Below; got != below {
			t.Fatalf("agents below %s have taken %v, its account says %v", who, below, got)
		}
	}
	if carved != l.pool.Carved {
		t.Fatalf("%v is left of the shares, the pool holds %v", carved, l.pool.Carved)
	}
	for _, a := range []budget.Amount{spent, held, kept, carved, l.pool.Unknown, l.pool.Overrun} {
		if a.Tokens < 0 || a.Nano < 0 || a.Calls < 0 {
			t.Fatalf("negative amount %v in %+v", a, l.pool)
		}
	}
	if !l.pool.Within() {
		t.Fatalf("beyond the limit: %+v", l.pool)
	}
	all := l.pool.Spent.Plus(l.pool.Held).Plus(l.pool.Kept).Plus(l.pool.Carved)
	if l.pool.Overrun.Zero() {
		if room := l.pool.Limit.Room(all); room.Tokens < 0 || room.Nano < 0 {
			t.Fatalf("what is kept for closing turns and carved is not there: room %v", room)
		}
	}
}

func (l *poolLedger) reserveAndCheck(t *rapid.T, who string, k budget.AttemptRequest) {
	l.next[who]++
	n := l.next[who]
	before := l.pool.Account(who)
	covers := k.Price.Bound(k.Input, k.Output).Plus(k.Price.Bound(k.Input+k.Output, k.Closing))
	pool, g := l.pool.Reserve(who, n, k)
	if rest := before.Share.Minus(before.Spent).Minus(before.Below); !before.Share.Zero() && before.Limit.Nano > 0 && covers.Tokens <= rest.Tokens && covers.Nano <= rest.Nano &&
		g.Short != budget.ShortCalls && (g.Verdict == budget.Wait || g.Verdict == budget.Denied) {
		t.Fatalf("%s is answered %s, and %v of its share are left", who, g.Verdict, rest)
	}
	switch g.Verdict {
	case budget.Granted, budget.Closing:
		l.pool = pool
		in, out := k.Input, g.Output
		most := k.Price.Bound(in, out)
		most.Calls = g.Calls
		l.open[who] = testReservation{n, most}
		if a := pool.Account(who); a.Held != most {
			t.Fatalf("%s holds %v, its attempt may cost %v", who, a.Held, most)
		}
	case budget.Stale:
		t.Fatalf("reservation %d of %s is stale", n, who)
	case budget.Wait:
		if l.pool.Held.Zero() {
			t.Fatalf("%s waits for nobody", who)
		}
	}
}

// TestPool: whatever is asked, used, lost or settled twice, in whatever order,
// the pool keeps its promise (G1, G4).
//
//behaviour:shows G1
func TestPool(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &poolLedger{open: map[string]testReservation{}, next: map[string]int{}}
		l.pool.Limit = budget.Limit{Tokens: rapid.Int64Range(0, 60000).Draw(t, "tokens"), Nano: rapid.Int64Range(0, 900000).Draw(t, "nano"),
			Calls: rapid.Int64Range(0, 100).Draw(t, "limit of calls")}
		p := drawPrice(t)
		own := budget.Limit{Tokens: rapid.Int64Range(0, 20000).Draw(t, "own"), Nano: rapid.Int64Range(0, 300000).Draw(t, "own nano")}
		for i := range rapid.IntRange(1, 6).Draw(t, "agents") {
			who := fmt.Sprintf("a%d", i)
			pool, ok := l.pool.AdmitBelow(rapid.SampledFrom(append(l.who, "")).Draw(t, "parent"), who, own, drawAsk(t, p))
			if ok {
				l.pool, l.who = pool, append(l.who, who)
			}
			if ok && rapid.Bool().Draw(t, "has a share") {
				l.pool = l.pool.Carve(who)
				l.checkSums(t)
			}
		}
		if len(l.who) == 0 {
			return
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			who := rapid.SampledFrom(l.who).Draw(t, "who")
			switch o, open := l.open[who]; rapid.IntRange(0, 4).Draw(t, "what") {
			case 0, 1:
				if !open {
					l.reserveAndCheck(t, who, drawAsk(t, p))
				}
			case 2:
				used := o.most
				used.Tokens -= rapid.Int64Range(0, used.Tokens).Draw(t, "less")
				l.pool = l.pool.Settle(who, o.number, used)
				l.pool = l.pool.Settle(who, o.number, used)
				delete(l.open, who)
			case 3:
				l.pool = l.pool.Lose(who, o.number, 0)
				delete(l.open, who)
			case 4:
				stale := l.pool.Account(who).Closed
				again, g := l.pool.Reserve(who, stale, drawAsk(t, p))
				if stale > 0 && (g.Verdict != budget.Stale || again != l.pool) {
					t.Fatalf("reservation %d of %s was closed and is %s", stale, who, g.Verdict)
				}
			}
			l.checkSums(t)
		}
		for _, who := range l.who {
			l.pool = l.pool.Leave(who)
		}
		l.checkSums(t)
		if !l.pool.Held.Zero() || !l.pool.Kept.Zero() || !l.pool.Carved.Zero() {
			t.Fatalf("all have left, %v is held, %v kept and %v carved", l.pool.Held, l.pool.Kept, l.pool.Carved)
		}
	})
}

// TestSettleBeforeReserveClosesTheReservation: a Settle that arrives before its Reserve closes the reservation for
// good: in either order nothing stays held (G1).
func TestSettleBeforeReserveClosesTheReservation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := drawAsk(t, drawPrice(t))
		k.Final = false
		base, ok := budget.Pool{Limit: budget.Limit{Tokens: 1 << 20}}.Admit("a", budget.Limit{}, k)
		if !ok {
			t.Fatal("not admitted")
		}
		one, g := base.Reserve("a", 1, k)
		if g.Verdict != budget.Granted {
			t.Fatalf("verdict %s", g.Verdict)
		}
		one = one.Settle("a", 1, budget.Amount{Tokens: 10})
		two := base.Settle("a", 1, budget.Amount{Tokens: 10})
		two, g = two.Reserve("a", 1, k)
		if g.Verdict != budget.Stale {
			t.Fatalf("a reservation settled before it was seen is %s", g.Verdict)
		}
		for name, p := range map[string]budget.Pool{"reserve, settle": one, "settle, reserve": two} {
			if a := p.Account("a"); !p.Held.Zero() || a.Open != 0 || a.Closed != 1 {
				t.Errorf("%s: held %v, account %+v", name, p.Held, a)
			}
		}
		if two.Spent != (budget.Amount{}) {
			t.Errorf("nothing was sent, and %v is spent", two.Spent)
		}
	})
}

// TestPoolIsAValue: a pool is a value: what happens to a copy does not touch it.
func TestPoolIsAValue(t *testing.T) {
	k := budget.AttemptRequest{Input: 100, Output: 1000, OutputMin: 64, Closing: 100}
	p := budget.Pool{Limit: budget.Limit{Tokens: 100000}}
	for i := range 40 {
		p, _ = p.Admit(fmt.Sprint(i), budget.Limit{}, k)
	}
	one, _ := p.Reserve("7", 1, k)
	two, _ := p.Reserve("7", 1, k)
	_ = two.Settle("7", 1, budget.Amount{Tokens: 600})
	if p.Account("7").Open != 0 || !p.Held.Zero() {
		t.Errorf("the pool before changed: %+v", p.Account("7"))
	}
	if a := one.Account("7"); a.Open != 1 || a.Spent.Tokens != 0 {
		t.Errorf("the other future changed: %+v", a)
	}
}

// TestUnknownPrice: without a price a limit in money refuses, and without a
// limit in money nothing is refused (G4).
//
//behaviour:shows G4
func TestUnknownPrice(t *testing.T) {
	k := budget.AttemptRequest{Input: 100, Output: 1000, OutputMin: 64, Closing: 100}
	if _, ok := (budget.Pool{Limit: budget.Limit{Nano: 1 << 40}}).Admit("a", budget.Limit{}, k); ok {
		t.Error("admitted under a limit in money that cannot be kept")
	}
	if _, ok := (budget.Pool{}).Admit("a", budget.Limit{Nano: 1 << 40}, k); ok {
		t.Error("admitted under a cap of its own in money that cannot be kept")
	}
	p, ok := budget.Pool{}.Admit("a", budget.Limit{}, k)
	if !ok {
		t.Fatal("refused though money is not limited")
	}
	p.Limit.Nano = 1 << 40
	if _, g := p.Reserve("a", 1, k); g.Verdict != budget.Denied || g.Short != budget.ShortMoney {
		t.Errorf("a limit in money that came later: %+v", g)
	}
}

// TestHostileNumbersCannotMakeRoomInAPool: numbers that no agent of ours sends cannot make room (G1).
func TestHostileNumbersCannotMakeRoomInAPool(t *testing.T) {
	numbers := []int64{-1 << 62, -1 << 40, -5, 0, 5, 1 << 40, 1 << 62}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom(numbers)
		k := budget.AttemptRequest{Input: n.Draw(t, "input"), Output: n.Draw(t, "output"), OutputMin: n.Draw(t, "least"), Closing: n.Draw(t, "closing"),
			Calls: n.Draw(t, "calls"), Final: rapid.Bool().Draw(t, "final"), Price: budget.Price{Known: true, Input: n.Draw(t, "in"), Output: n.Draw(t, "out")}}
		p := budget.Pool{Limit: budget.Limit{Tokens: 10000, Nano: 10000, Calls: 10}}
		p, _ = p.Admit("a", budget.Limit{}, k)
		good := budget.AttemptRequest{Input: 10, Output: 100, OutputMin: 10, Closing: 10, Price: budget.Price{Known: true}}
		p, _ = p.Admit("b", budget.Limit{}, good)
		p, _ = p.Reserve("a", 1, k)
		p = p.Settle("a", 1, budget.Amount{Tokens: n.Draw(t, "used"), Nano: n.Draw(t, "money"), Calls: n.Draw(t, "called")})
		p, _ = p.Reserve("a", 2, k)
		p = p.Lose("a", 2, n.Draw(t, "lost"))
		p = p.Leave("a")
		for _, a := range []budget.Amount{p.Spent, p.Held, p.Kept, p.Unknown, p.Overrun} {
			if a.Tokens < 0 || a.Nano < 0 || a.Calls < 0 {
				t.Fatalf("negative amount %v in %+v", a, p)
			}
		}
		if !p.Within() {
			t.Fatalf("beyond the limit: %+v", p)
		}
	})
}

// crowdedPool is a pool with many accounts, of which one is about to reserve.
func crowdedPool(tb testing.TB, agents int) (budget.Pool, budget.AttemptRequest) {
	tb.Helper()
	k := budget.AttemptRequest{Input: 100, Output: 1000, OutputMin: 64, Closing: 100}
	p := budget.Pool{}
	for i := range agents {
		p, _ = p.Admit(fmt.Sprintf("root-%d", i), budget.Limit{}, k)
	}
	return p, k
}

// TestStepCostGrowsLittleWithMembers: a reservation among 10,000 agents allocates at most three times
// what it does among 100 (P24).
func TestStepCostGrowsLittleWithMembers(t *testing.T) {
	cost := func(agents int) float64 {
		p, k := crowdedPool(t, agents)
		return testing.AllocsPerRun(200, func() {
			q, _ := p.Reserve("root-50", 1, k)
			q.Settle("root-50", 1, budget.Amount{Tokens: 200})
		})
	}
	few, many := cost(100), cost(10_000)
	if many > 3*few {
		t.Errorf("%.0f allocations among 100 agents, %.0f among 10,000", few, many)
	}
}

func BenchmarkReserve(b *testing.B) {
	for _, agents := range []int{100, 10_000} {
		b.Run(fmt.Sprint(agents), func(b *testing.B) {
			p, k := crowdedPool(b, agents)
			b.ReportAllocs()
			for b.Loop() {
				q, _ := p.Reserve("root-50", 1, k)
				q.Settle("root-50", 1, budget.Amount{Tokens: 200})
			}
		})
	}
}

// TestBounds: a message bounds at least the bytes of everything in it, a
// tombstone costs nothing, and a price bounds at its dearest rate (D1's strict side).
func TestBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String()
		m := model.Message{Text: text.Draw(t, "text")}
		total := len(m.Text)
		for range rapid.IntRange(0, 3).Draw(t, "calls") {
			c := model.ToolCall{ID: "1-0", Name: text.Draw(t, "name"), Args: text.Draw(t, "args")}
			m.Calls = append(m.Calls, c)
			total += len(c.Name) + len(c.Args)
		}
		for range rapid.IntRange(0, 3).Draw(t, "results") {
			r := model.ToolResult{Call: "1-0", Text: text.Draw(t, "result")}
			m.Results = append(m.Results, r)
			total += len(r.Text)
		}
		m.Opaque = slices.Repeat([]model.Opaque{{Data: []byte(text.Draw(t, "opaque"))}}, 2)
		total += 2 * len(m.Opaque[0].Data)
		if got := budget.Message(m); got < int64(total) {
			t.Fatalf("bound %d for %d bytes", got, total)
		}
		m.Tombstone = true
		if got := budget.Message(m); got != 0 {
			t.Fatalf("a tombstone is never sent, and is bounded by %d", got)
		}
		p := drawPrice(t)
		u := model.Usage{Input: rapid.Int64Range(0, 99).Draw(t, "u"), CacheRead: 7, CacheCreation: 9, Output: 5}
		if cost, most := p.Cost(u), p.Bound(u.Prompt(), u.Output); cost.Nano > most.Nano || cost.Tokens > most.Tokens {
			t.Fatalf("%v costs %v, the bound is %v", u, cost, most)
		}
	})
}
