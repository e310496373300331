package throttle_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/throttle"
)

// play drives one gate by hand.
type play struct {
	t *testing.T
	g throttle.Gate
}

func begin(t *testing.T, l throttle.Limits) *play { return &play{t, throttle.New(l, 1)} }

func (p *play) step(e throttle.Event) []throttle.Effect {
	var fx []throttle.Effect
	p.g, fx = p.g.Step(e)
	return fx
}

// ask asks for a request with a lease in hand; the call is named by who.
func (p *play) ask(at int64, who, run string) []throttle.Effect {
	return p.step(throttle.Asked{At: at, Who: who, Call: who, Run: run, Tokens: 100, Held: true})
}

// queue waits without a lease.
func (p *play) queue(at int64, who, run string) []throttle.Effect {
	return p.step(throttle.Asked{At: at, Who: who, Call: "", Run: run, Tokens: 100})
}

func (p *play) answer(at int64, call string, as throttle.Verdict, after int64) []throttle.Effect {
	return p.step(throttle.Answered{At: at, Call: call, As: as, AfterMS: after})
}

// until lets time pass up to an instant, tick by tick, and returns what came of it.
func (p *play) until(at int64) []throttle.Effect {
	p.t.Helper()
	var all []throttle.Effect
	for range 10_000 {
		next, ok := p.g.Next()
		if !ok || next > at {
			return append(all, p.step(throttle.Ticked{At: at})...)
		}
		all = append(all, p.step(throttle.Ticked{At: next})...)
	}
	p.t.Fatal("the gate never rests")
	return nil
}

func admitted(fx []throttle.Effect) (who []string) {
	for _, e := range fx {
		if a, ok := e.(throttle.Admit); ok {
			who = append(who, a.Who)
		}
	}
	return who
}

func refused(fx []throttle.Effect) (list []throttle.Refuse) {
	for _, e := range fx {
		if r, ok := e.(throttle.Refuse); ok {
			list = append(list, r)
		}
	}
	return list
}

func told(fx []throttle.Effect) (list []throttle.Notice) {
	for _, e := range fx {
		if n, ok := e.(throttle.Tell); ok {
			list = append(list, n.Notice)
		}
	}
	return list
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// What is open lets everybody through at once: it costs nothing to ask.
func TestAnOpenGateLetsEverybodyThrough(t *testing.T) {
	p := begin(t, throttle.Limits{})
	for i := range 500 {
		who := fmt.Sprint(i)
		if got := admitted(p.ask(int64(i), who, "r")); !slices.Equal(got, []string{who}) {
			t.Fatalf("%s: %v", who, got)
		}
	}
	if _, ok := p.g.Next(); ok {
		t.Error("it waits for a time")
	}
}

// One refusal closes the gate for all, for as long as the provider asks; it is
// told to the other nodes once, and who comes with a lease is sent away at once.
//
//behaviour:shows G6
func TestARefusalIsHeardOnce(t *testing.T) {
	p := begin(t, throttle.Limits{})
	for i := range 10 {
		p.ask(0, fmt.Sprint(i), "r")
	}
	if got := told(p.answer(10, "0", throttle.Limited, 30_000)); len(got) != 1 || got[0].PauseMS != 30_000 || got[0].Why != throttle.Limited {
		t.Fatalf("told: %+v", got)
	}
	// The others were under way, and are refused as well: nothing new is in that.
	for i := 1; i < 10; i++ {
		same(t, "told again", len(told(p.answer(20, fmt.Sprint(i), throttle.Limited, 29_990))), 0)
	}
	fx := p.ask(100, "x", "r")
	if r := refused(fx); len(r) != 1 || r[0].AfterMS < 29_000 || r[0].Why != throttle.Limited {
		t.Fatalf("%+v", fx)
	}
	p.queue(101, "y", "r")
	same(t, "let in while it is closed", admitted(p.until(30_009)), []string(nil))
	same(t, "let in after it", admitted(p.until(31_011)), []string{"y"})
}

// A pause is bounded, whatever the provider asks; where it names none the pause
// grows with each refusal and is short again after an answer.
func TestPausesAreBounded(t *testing.T) {
	l := throttle.DefaultLimits()
	p := begin(t, l)
	p.ask(0, "a", "r")
	same(t, "the longest", told(p.answer(0, "a", throttle.Limited, 1<<60))[0].PauseMS, l.PauseMax)

	p = begin(t, l)
	at, want := int64(0), l.BackoffMin
	refuse := func() int64 {
		t.Helper()
		p.queue(at, "a", "r")
		for len(admitted(p.step(throttle.Ticked{At: at}))) == 0 && !p.g.Idle(at) {
			next, ok := p.g.Next()
			if !ok {
				break
			}
			at = next
			if p.g.Status(at).ClosedMS == 0 {
				p.step(throttle.Ticked{At: at})
				break
			}
		}
		same(t, "in with the ticket", admitted(p.ask(at, "a", "r")), []string{"a"})
		n := told(p.answer(at, "a", throttle.Limited, 0))
		if len(n) != 1 {
			t.Fatalf("told %+v", n)
		}
		return n[0].PauseMS
	}
	for range 12 {
		same(t, "pause", refuse(), want)
		want = min(2*want, l.BackoffMax)
		at++
	}
}

// Runs take turns: one with a single agent waits for one call of the run with a
// hundred, not for a hundred calls.
//
//behaviour:shows G6
func TestRunsTakeTurns(t *testing.T) {
	p := begin(t, throttle.Limits{Window: 1})
	p.ask(0, "first", "crowd")
	for i := range 100 {
		p.queue(0, fmt.Sprintf("crowd-%d", i), "crowd")
	}
	p.queue(0, "lonely", "one")
	before, call := 0, "first"
	for range 10 {
		who := admitted(p.answer(1, call, throttle.OK, 0))
		if len(who) != 1 {
			t.Fatalf("admitted %v", who)
		}
		if who[0] == "lonely" {
			same(t, "of the crowd before it", before, 1)
			return
		}
		before++
		call = who[0]
		same(t, "comes", admitted(p.ask(1, call, "crowd")), []string{call})
	}
	t.Error("the lonely one never had its turn")
}

// After a refusal half of what was under way may be, and it grows with answers.
func TestTheWindowHalvesAndGrows(t *testing.T) {
	p := begin(t, throttle.Limits{})
	for i := range 40 {
		p.ask(0, fmt.Sprint(i), "r")
	}
	for i := range 40 {
		p.answer(1, fmt.Sprint(i), throttle.Limited, 1000)
	}
	for i := range 60 {
		p.queue(2, fmt.Sprintf("w%d", i), "r")
	}
	if n := len(admitted(p.until(2500))); n != 20 {
		t.Errorf("%d are let in, of 40 that were too many", n)
	}
	// Those who do not come in time make room for others.
	if n := len(admitted(p.until(2500 + throttle.DefaultLimits().Ticket))); n != 20 {
		t.Errorf("%d are let in instead of those who never came", n)
	}
	for i := range 60 {
		p.step(throttle.Left{At: 20_000, Who: fmt.Sprintf("w%d", i)})
	}
	window := p.g.Status(20_000).Window
	for range 200 {
		p.ask(20_000, "a", "r")
		p.answer(20_000, "a", throttle.OK, 0)
	}
	if now := p.g.Status(20_000).Window; now <= window || now > window+20 {
		t.Errorf("the window was %d and is %d after 200 answers", window, now)
	}
	p.step(throttle.Ticked{At: 20_000 + throttle.DefaultLimits().Forget})
	if !p.g.Idle(20_000 + throttle.DefaultLimits().Forget) {
		t.Error("an old refusal is not forgotten")
	}
}

// Failures in a row open the breaker; after a while one request is a trial, and
// only its answer lets the others in. What this node alone has seen is not told.
//
//behaviour:shows G6
func TestTheBreakerTriesOneRequest(t *testing.T) {
	for as, shared := range map[throttle.Verdict]bool{throttle.Overloaded: true, throttle.Failed: false} {
		l := throttle.DefaultLimits()
		p := begin(t, l)
		var fx []throttle.Effect
		for i := range l.Failures {
			same(t, "still closed", p.g.Status(0).Breaker, throttle.Closed)
			p.ask(0, fmt.Sprint(i), "r")
			fx = p.answer(0, fmt.Sprint(i), as, 0)
		}
		if n := told(fx); len(n) != 0 != shared {
			t.Errorf("%s: told %+v", as, n)
		}
		same(t, "open", p.g.Status(1).Breaker, throttle.Open)
		for i := range 5 {
			p.queue(1, fmt.Sprintf("w%d", i), "r")
		}
		who := admitted(p.until(2*l.BreakerMin - 1))
		same(t, "one on trial", who, []string{"w0"})
		same(t, "half open", p.g.Status(2*l.BreakerMin).Breaker, throttle.Half)
		p.ask(2*l.BreakerMin, "w0", "r")
		same(t, "nobody beside it", refused(p.ask(2*l.BreakerMin, "x", "r")), []throttle.Refuse(nil))
		p.answer(2*l.BreakerMin, "w0", as, 0) // it fails: longer
		same(t, "closed for longer", p.g.Status(2*l.BreakerMin).ClosedMS >= 2*l.BreakerMin, true)
		at := 6 * l.BreakerMin
		who = admitted(p.until(at))
		if len(who) != 1 {
			t.Fatalf("%s: on trial: %v", as, who)
		}
		p.ask(at, who[0], "r")
		fx = p.step(throttle.Began{At: at + 1, Call: who[0]})
		same(t, "closed again", p.g.Status(at+1).Breaker, throttle.Closed)
		if n := told(fx); len(n) != 0 != shared || shared && (n[0].PauseMS != 0 || n[0].Why != throttle.OK) {
			t.Errorf("%s: told %+v", as, n)
		}
	}
}

// A trial that comes to nothing (its agent was canceled, or never came) makes
// room for another one.
func TestALostTrialIsReplaced(t *testing.T) {
	l := throttle.DefaultLimits()
	p := begin(t, l)
	for i := range l.Failures {
		p.ask(0, fmt.Sprint(i), "r")
		p.answer(0, fmt.Sprint(i), throttle.Overloaded, 0)
	}
	for _, who := range []string{"a", "b", "c"} {
		p.queue(0, who, "r")
	}
	at := 2 * l.BreakerMin
	same(t, "on trial", admitted(p.until(at)), []string{"a"})
	same(t, "a leaves", admitted(p.step(throttle.Left{At: at, Who: "a"})), []string{"b"})
	same(t, "b never comes", admitted(p.until(at+l.Ticket)), []string{"c"})
	p.ask(at+l.Ticket, "c", "r")
	p.queue(at+l.Ticket, "d", "r")
	same(t, "c is stopped", admitted(p.answer(at+l.Ticket, "c", throttle.Neutral, 0)), []string{"d"})
}

// What another node has heard holds here too, and an end of overload as well.
func TestWhatANodeHearsAllObey(t *testing.T) {
	one, two := begin(t, throttle.Limits{}), begin(t, throttle.Limits{})
	one.ask(0, "a", "r")
	n := told(one.answer(0, "a", throttle.Limited, 5000))[0]
	// The clock of the other node shows another time.
	two.step(throttle.Heard{At: 70_000, Notice: n})
	if r := refused(two.ask(70_001, "b", "r")); len(r) != 1 || r[0].AfterMS < 4999 {
		t.Fatalf("%+v", r)
	}
	two.queue(70_002, "b", "r")
	same(t, "while it is closed", admitted(two.until(74_999)), []string(nil))
	same(t, "after it", admitted(two.until(76_300)), []string{"b"})

	two.step(throttle.Heard{At: 80_000, Notice: throttle.Notice{PauseMS: 60_000, Why: throttle.Overloaded}})
	two.queue(80_001, "c", "r")
	same(t, "the provider answers somebody", admitted(two.step(throttle.Heard{At: 80_002, Notice: throttle.Notice{Why: throttle.OK}})), []string{"c"})
}

// A notice of a node that lies, or of another version, does no more harm than a
// pause of the longest kind.
func TestANoticeIsBounded(t *testing.T) {
	p := begin(t, throttle.Limits{})
	for _, n := range []throttle.Notice{{PauseMS: 1 << 62, Why: throttle.Limited}, {PauseMS: -5, Why: throttle.Limited}, {PauseMS: 1 << 62, Why: "x"}, {Requests: -1, Tokens: -9}} {
		p.step(throttle.Heard{At: 0, Notice: n})
	}
	l := throttle.DefaultLimits()
	if ms := p.g.Status(0).ClosedMS; ms > l.PauseMax+l.JitterMax {
		t.Errorf("closed for %d ms", ms)
	}
}

// Rates that another node named count for a time: who named them may be gone, and
// nobody takes them back. A gate that has nothing else to remember is idle then, and
// one that is told of its own goes by those.
//
//behaviour:shows G6
func TestRatesOfOthersAreForgotten(t *testing.T) {
	l := throttle.DefaultLimits()
	for _, n := range []throttle.Notice{{Requests: 1, Tokens: -9}, {Requests: -1, Tokens: 1}, {Requests: 1, Tokens: 1}} {
		p := begin(t, throttle.Limits{})
		p.step(throttle.Heard{At: 0, Notice: n})
		if p.g.Idle(0) {
			t.Errorf("%+v: forgotten at once", n)
		}
		if at, ok := p.g.Next(); !ok || at != l.Forget {
			t.Errorf("%+v: looked at again at %d, %v", n, at, ok)
		}
		p.step(throttle.Ticked{At: l.Forget})
		if !p.g.Idle(l.Forget) {
			t.Errorf("%+v: it counts for ever", n)
		}
	}
	p := begin(t, throttle.Limits{})
	p.step(throttle.Ruled{At: 0, Requests: 60_000})
	p.step(throttle.Heard{At: 0, Notice: throttle.Notice{Requests: 1}})
	for i := range 50 {
		p.queue(0, fmt.Sprint(i), "r")
	}
	if n := len(admitted(p.step(throttle.Ticked{At: 10}))); n != 0 {
		t.Errorf("%d more pass by the rate that was heard", n)
	}
	p.step(throttle.Ticked{At: l.Forget})
	if n := len(admitted(p.step(throttle.Ticked{At: l.Forget + 100}))); n < 40 {
		t.Errorf("%d pass by the gate's own rate", n)
	}
	if p.g.Idle(l.Forget) {
		t.Error("it has a rate of its own")
	}
}

// Rates are kept, by each node for its share.
func TestRatesAreShared(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		p := begin(t, throttle.Limits{})
		p.step(throttle.Shared{At: 0, Nodes: nodes})
		p.step(throttle.Ruled{At: 0, Requests: 600})
		for i := range 1000 {
			p.queue(0, fmt.Sprint(i), "r")
		}
		n, at := 0, int64(0)
		take := func(fx []throttle.Effect) {
			for _, who := range admitted(fx) {
				n++
				p.ask(at, who, "r")
				p.answer(at, who, throttle.OK, 0)
			}
		}
		take(p.step(throttle.Ticked{At: 0}))
		for at < 60_000 {
			next, ok := p.g.Next()
			if !ok {
				break
			}
			at = next
			take(p.step(throttle.Ticked{At: at}))
		}
		burst := 600 / 6 / nodes
		if want := 600/nodes + burst; n > want+1 || n < want-3 {
			t.Errorf("%d nodes: %d requests in a minute, want about %d", nodes, n, want)
		}
	}
}

// A request for more tokens than a minute allows is made, and owed.
func TestARequestLargerThanTheRateIsMade(t *testing.T) {
	p := begin(t, throttle.Limits{})
	p.step(throttle.Ruled{At: 0, Tokens: 6000})
	fx := p.step(throttle.Asked{At: 0, Who: "big", Call: "big", Run: "r", Tokens: 50_000, Held: true})
	same(t, "the large one", admitted(fx), []string{"big"})
	p.queue(1, "next", "r")
	same(t, "behind it", admitted(p.until(400_000)), []string(nil))
	same(t, "it used less", admitted(p.step(throttle.Answered{At: 400_001, Call: "big", As: throttle.OK, Used: 100})), []string{"next"})
}

// Two futures of one gate do not touch each other.
func TestAGateIsAValue(t *testing.T) {
	g := throttle.New(throttle.Limits{Window: 1}, 7)
	g, _ = g.Step(throttle.Asked{Who: "a", Call: "a", Run: "r", Held: true})
	one, _ := g.Step(throttle.Asked{Who: "b", Call: "b", Run: "r"})
	two, _ := g.Step(throttle.Answered{Call: "a", As: throttle.Limited, AfterMS: 1000})
	same(t, "before", g.Status(0), throttle.Status{Window: 1, Flying: 1})
	same(t, "one", one.Status(0), throttle.Status{Window: 1, Flying: 1, Waiting: 1})
	same(t, "two", two.Status(0).Flying, 0)
}

// TestOneAgentBesideAHundred: a run of a hundred agents keeps a gate busy that
// lets four requests through at once. How long a run with one agent waits there
// is printed, and does not depend on how many the others are.
func TestOneAgentBesideAHundred(t *testing.T) {
	const call, rounds = 1000, 100 // an answer takes a second
	p := begin(t, throttle.Limits{Window: 4})
	asked, ends, waits := map[string]int64{}, map[string]int64{}, map[string][]int64{}
	at := int64(0)
	var take func(fx []throttle.Effect)
	take = func(fx []throttle.Effect) {
		for _, e := range fx {
			a, ok := e.(throttle.Admit)
			switch {
			case ok && a.Held:
				run, _, _ := strings.Cut(a.Who, "-")
				waits[run] = append(waits[run], at-asked[a.Who])
				ends[a.Who] = at + call
			case ok:
				take(p.ask(at, a.Who, strings.Split(a.Who, "-")[0]))
			}
		}
	}
	for i := range 100 {
		take(p.queue(at, fmt.Sprintf("crowd-%d", i), "crowd"))
	}
	take(p.queue(at, "lonely-0", "lonely"))
	for len(waits["lonely"]) < rounds {
		who := ""
		for w, end := range ends {
			if who == "" || end < ends[who] || end == ends[who] && w < who {
				who = w
			}
		}
		at = ends[who]
		delete(ends, who)
		take(p.answer(at, who, throttle.OK, 0))
		asked[who] = at
		run, _, _ := strings.Cut(who, "-")
		take(p.queue(at, who, run))
	}
	p99 := func(run string) int64 {
		slices.Sort(waits[run])
		return waits[run][len(waits[run])*99/100]
	}
	t.Logf("waits at a gate for 4 at once, p99: a run with one agent %d ms, a run with a hundred %d ms", p99("lonely"), p99("crowd"))
	if p99("lonely") > 2*call || p99("crowd") < 10*call {
		t.Error("the runs do not take turns")
	}
}
