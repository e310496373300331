package budget_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/model"
)

var tiered = budget.Price{Known: true, Input: 3, Output: 15, CacheRead: 1, CacheWrite: 4,
	Long: budget.Tier{Above: 200, Input: 6, Output: 22, CacheRead: 2, CacheWrite: 8}}

// A provider with two rates bills a whole call at one of them, by the length of
// its prompt.
//
//behaviour:shows G4
func TestALongPromptIsBilledAndBoundedAtItsOwnRate(t *testing.T) {
	short := tiered.Cost(model.Usage{Input: 100, CacheRead: 100, Output: 10})
	long := tiered.Cost(model.Usage{Input: 100, CacheRead: 101, Output: 10})
	if short.Nano != 100*3+100+150 || long.Nano != 100*6+101*2+220 {
		t.Errorf("short costs %d, long %d", short.Nano, long.Nano)
	}
	if s, l := tiered.Bound(200, 10), tiered.Bound(201, 10); s.Nano != 200*4+150 || l.Nano != 201*8+220 {
		t.Errorf("short is bounded by %d, long by %d", s.Nano, l.Nano)
	}
}

// A third rate is billed and held only where it begins.
func TestAThirdRateIsForTheLongestPrompts(t *testing.T) {
	p := tiered
	p.Longest = budget.Tier{Above: 400, Input: 12, Output: 50, CacheRead: 4, CacheWrite: 16}
	for _, c := range []struct{ prompt, billed, held int64 }{
		{200, 200*3 + 150, 200*4 + 150}, {201, 201*6 + 220, 201*8 + 220}, {400, 400*6 + 220, 400*8 + 220}, {401, 401*12 + 500, 401*16 + 500},
	} {
		if got := p.Cost(model.Usage{Input: c.prompt, Output: 10}).Nano; got != c.billed {
			t.Errorf("a prompt of %d is billed %d, want %d", c.prompt, got, c.billed)
		}
		if got := p.Bound(c.prompt, 10).Nano; got != c.held {
			t.Errorf("a prompt of %d is held at %d, want %d", c.prompt, got, c.held)
		}
	}
}

// What is held covers what is billed, at any length of prompt, for two prices too.
func TestABoundCoversEveryBillUpToIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, q := drawPrice(t), drawPrice(t)
		in, out := rapid.Int64Range(0, 5000).Draw(t, "in"), rapid.Int64Range(0, 5000).Draw(t, "out")
		read := rapid.Int64Range(0, in).Draw(t, "read")
		u := model.Usage{Input: in - read, CacheRead: read, Output: rapid.Int64Range(0, out).Draw(t, "said")}
		for _, b := range []budget.Price{p, p.Dearer(q), q.Dearer(p)} {
			if billed, held := p.Cost(u).Nano, b.Bound(in, out).Nano; billed > held {
				t.Fatalf("%+v bills %d of %d held by %+v", p, billed, held, b)
			}
		}
	})
}

// A reply may make the next prompt a long one: what is kept for the closing turn
// is kept at that rate.
func TestReservationCoversATurnThatCrossesThePriceTier(t *testing.T) {
	p := budget.Pool{Limit: budget.Limit{Nano: 1 << 40}}
	k := budget.AttemptRequest{Input: 190, Output: 20, OutputMin: 1, Closing: 5, Price: tiered}
	p, ok := p.Admit("a", budget.Limit{}, k)
	if !ok {
		t.Fatal("not admitted")
	}
	p, g := p.Reserve("a", 1, k)
	if g.Verdict != budget.Granted || p.Held.Nano != 190*4+20*15 || p.Kept.Nano != 210*8+5*22 {
		t.Errorf("%+v holds %d and keeps %d", g, p.Held.Nano, p.Kept.Nano)
	}
	p = p.Settle("a", 1, tiered.Cost(model.Usage{Input: 190, Output: 20}))
	k.Input, k.Final = 210, true
	if _, g = p.Reserve("a", 2, k); g.Verdict != budget.Closing {
		t.Errorf("the closing turn that was kept is %+v", g)
	}
}

func TestAModelWithoutAPriceIsRefusedUnderALimitUnlessAllowed(t *testing.T) {
	for _, c := range []struct {
		price budget.Price
		want  bool
	}{{budget.Price{}, false}, {budget.Price{Allowed: true}, true}, {budget.Price{Known: true, Input: 1}, true}} {
		k := budget.AttemptRequest{Input: 10, Output: 10, OutputMin: 1, Closing: 5, Price: c.price}
		if _, ok := (budget.Pool{Limit: budget.Limit{Nano: 1000, Tokens: 1000}}).Admit("a", budget.Limit{}, k); ok != c.want {
			t.Errorf("%+v: admitted %v", c.price, ok)
		}
	}
}

// Where the model may change, both prices bound it.
func TestADearerPriceIsBelowNeitherOfTwo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, q := drawPrice(t), drawPrice(t)
		in, out := rapid.Int64Range(0, 4000).Draw(t, "in"), rapid.Int64Range(0, 4000).Draw(t, "out")
		d := p.Dearer(q).Bound(in, out)
		if a, b := p.Bound(in, out), q.Bound(in, out); d.Nano < a.Nano || d.Nano < b.Nano {
			t.Fatalf("%+v and %+v: %d is below %d or %d", p, q, d.Nano, a.Nano, b.Nano)
		}
	})
}
