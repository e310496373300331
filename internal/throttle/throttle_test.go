package throttle_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/throttle"
)

// testDriver drives one gate by hand.
type testDriver struct {
	t *testing.T
	g throttle.Throttle
}

func newDriver(t *testing.T, l throttle.Limits) *testDriver {
	return &testDriver{t, throttle.New(l, 1)}
}

func (p *testDriver) applyEvent(e throttle.Event) []throttle.Effect {
	var fx []throttle.Effect
	p.g, fx = p.g.Step(e)
	return fx
}

// requestReserved asks for a request with a lease in hand; the call is named by who.
func (p *testDriver) requestReserved(at int64, who, run string) []throttle.Effect {
	return p.applyEvent(throttle.CallRequested{At: at, Who: who, Call: who, Run: run, Tokens: 100, Reserved: true})
}

// requestTurn waits without a lease.
func (p *testDriver) requestTurn(at int64, who, run string) []throttle.Effect {
	return p.applyEvent(throttle.CallRequested{At: at, Who: who, Call: "", Run: run, Tokens: 100})
}

func (p *testDriver) answerCall(at int64, call string, as throttle.CallOutcome, after int64) []throttle.Effect {
	return p.applyEvent(throttle.CallAnswered{At: at, Call: call, Outcome: as, AfterMS: after})
}

// advanceTo lets time pass up to an instant, tick by tick, and returns what came of it.
func (p *testDriver) advanceTo(at int64) []throttle.Effect {
	p.t.Helper()
	var all []throttle.Effect
	for range 10_000 {
		next, ok := p.g.NextTick()
		if !ok || next > at {
			return append(all, p.applyEvent(throttle.TimePassed{At: at})...)
		}
		all = append(all, p.applyEvent(throttle.TimePassed{At: next})...)
	}
	p.t.Fatal("the gate never rests")
	return nil
}

func admittedCallers(fx []throttle.Effect) (who []string) {
	for _, e := range fx {
		if a, ok := e.(throttle.AdmitCaller); ok {
			who = append(who, a.Who)
		}
	}
	return who
}

func rejectedCallers(fx []throttle.Effect) (list []throttle.RejectCaller) {
	for _, e := range fx {
		if r, ok := e.(throttle.RejectCaller); ok {
			list = append(list, r)
		}
	}
	return list
}

func publishedNotices(fx []throttle.Effect) (list []throttle.Notice) {
	for _, e := range fx {
		if n, ok := e.(throttle.PublishNotice); ok {
			list = append(list, n.Notice)
		}
	}
	return list
}

func assertSame(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// What is open lets everybody through at once: it costs nothing to ask.
func TestAnOpenGateLetsEverybodyThrough(t *testing.T) {
	p := newDriver(t, throttle.Limits{})
	for i := range 500 {
		who := fmt.Sprint(i)
		if got := admittedCallers(p.requestReserved(int64(i), who, "r")); !slices.Equal(got, []string{who}) {
			t.Fatalf("%s: %v", who, got)
		}
	}
	if _, ok := p.g.NextTick(); ok {
		t.Error("it waits for a time")
	}
}

// One refusal closes the throttle for all, for as long as the provider asks; it is
// published to the other nodes once, and a caller with a reservation is rejected at once.
//
//behaviour:shows G6
func TestRefusalIsPublishedOnce(t *testing.T) {
	p := newDriver(t, throttle.Limits{})
	for i := range 10 {
		p.requestReserved(0, fmt.Sprint(i), "r")
	}
	if got := publishedNotices(p.answerCall(10, "0", throttle.Limited, 30_000)); len(got) != 1 || got[0].PauseMS != 30_000 || got[0].Why != throttle.Limited {
		t.Fatalf("told: %+v", got)
	}
	// The others were under way, and are refused as well: nothing new is in that.
	for i := 1; i < 10; i++ {
		assertSame(t, "told again", len(publishedNotices(p.answerCall(20, fmt.Sprint(i), throttle.Limited, 29_990))), 0)
	}
	fx := p.requestReserved(100, "x", "r")
	if r := rejectedCallers(fx); len(r) != 1 || r[0].AfterMS < 29_000 || r[0].Why != throttle.Limited {
		t.Fatalf("%+v", fx)
	}
	p.requestTurn(101, "y", "r")
	assertSame(t, "let in while it is closed", admittedCallers(p.advanceTo(30_009)), []string(nil))
	assertSame(t, "let in after it", admittedCallers(p.advanceTo(31_011)), []string{"y"})
}

// A pause is bounded, whatever the provider asks; where it names none the pause
// grows with each refusal and is short again after an answer.
func TestPausesAreBounded(t *testing.T) {
	l := throttle.DefaultLimits()
	p := newDriver(t, l)
	p.requestReserved(0, "a", "r")
	assertSame(t, "the longest", publishedNotices(p.answerCall(0, "a", throttle.Limited, 1<<60))[0].PauseMS, l.PauseMax)

	p = newDriver(t, l)
	at, want := int64(0), l.BackoffMin
	refuse := func() int64 {
		t.Helper()
		p.requestTurn(at, "a", "r")
		for len(admittedCallers(p.applyEvent(throttle.TimePassed{At: at}))) == 0 && !p.g.IsIdle(at) {
			next, ok := p.g.NextTick()
			if !ok {
				break
			}
			at = next
			if p.g.Status(at).ClosedMS == 0 {
				p.applyEvent(throttle.TimePassed{At: at})
				break
			}
		}
		assertSame(t, "in with the ticket", admittedCallers(p.requestReserved(at, "a", "r")), []string{"a"})
		n := publishedNotices(p.answerCall(at, "a", throttle.Limited, 0))
		if len(n) != 1 {
			t.Fatalf("told %+v", n)
		}
		return n[0].PauseMS
	}
	for range 12 {
		assertSame(t, "pause", refuse(), want)
		want = min(2*want, l.BackoffMax)
		at++
	}
}

// Runs take turns: one with a single agent waits for one call of the run with a
// hundred, not for a hundred calls.
//
//behaviour:shows G6
func TestThrottleServesRunsInTurn(t *testing.T) {
	p := newDriver(t, throttle.Limits{InitialWindow: 1})
	p.requestReserved(0, "first", "crowd")
	for i := range 100 {
		p.requestTurn(0, fmt.Sprintf("crowd-%d", i), "crowd")
	}
	p.requestTurn(0, "lonely", "one")
	before, call := 0, "first"
	for range 10 {
		who := admittedCallers(p.answerCall(1, call, throttle.OK, 0))
		if len(who) != 1 {
			t.Fatalf("admitted %v", who)
		}
		if who[0] == "lonely" {
			assertSame(t, "of the crowd before it", before, 1)
			return
		}
		before++
		call = who[0]
		assertSame(t, "comes", admittedCallers(p.requestReserved(1, call, "crowd")), []string{call})
	}
	t.Error("the lonely one never had its turn")
}

// After a refusal half of what was under way may be, and it grows with answers.
func TestTheWindowHalvesAndGrows(t *testing.T) {
	p := newDriver(t, throttle.Limits{})
	for i := range 40 {
		p.requestReserved(0, fmt.Sprint(i), "r")
	}
	for i := range 40 {
		p.answerCall(1, fmt.Sprint(i), throttle.Limited, 1000)
	}
	for i := range 60 {
		p.requestTurn(2, fmt.Sprintf("w%d", i), "r")
	}
	if n := len(admittedCallers(p.advanceTo(2500))); n != 20 {
		t.Errorf("%d are let in, of 40 that were too many", n)
	}
	// Those who do not come in time make room for others.
	if n := len(admittedCallers(p.advanceTo(2500 + throttle.DefaultLimits().TicketTTL))); n != 20 {
		t.Errorf("%d are let in instead of those who never came", n)
	}
	for i := range 60 {
		p.applyEvent(throttle.CallerLeft{At: 20_000, Who: fmt.Sprintf("w%d", i)})
	}
	window := p.g.Status(20_000).Window
	for range 200 {
		p.requestReserved(20_000, "a", "r")
		p.answerCall(20_000, "a", throttle.OK, 0)
	}
	if now := p.g.Status(20_000).Window; now <= window || now > window+20 {
		t.Errorf("the window was %d and is %d after 200 answers", window, now)
	}
	p.applyEvent(throttle.TimePassed{At: 20_000 + throttle.DefaultLimits().ForgetAfter})
	if !p.g.IsIdle(20_000 + throttle.DefaultLimits().ForgetAfter) {
		t.Error("an old refusal is not forgotten")
	}
}

// Failures in a row open the breaker; after a while one request is a trial, and
// only its answer lets the others in. What this node alone has seen is not told.
//
//behaviour:shows G6
func TestTheBreakerTriesOneRequest(t *testing.T) {
	for as, shared := range map[throttle.CallOutcome]bool{throttle.Overloaded: true, throttle.Failed: false} {
		l := throttle.DefaultLimits()
		p := newDriver(t, l)
		var fx []throttle.Effect
		for i := range l.Failures {
			assertSame(t, "still closed", p.g.Status(0).Breaker, throttle.BreakerClosed)
			p.requestReserved(0, fmt.Sprint(i), "r")
			fx = p.answerCall(0, fmt.Sprint(i), as, 0)
		}
		if n := publishedNotices(fx); len(n) != 0 != shared {
			t.Errorf("%s: told %+v", as, n)
		}
		assertSame(t, "open", p.g.Status(1).Breaker, throttle.BreakerOpen)
		for i := range 5 {
			p.requestTurn(1, fmt.Sprintf("w%d", i), "r")
		}
		who := admittedCallers(p.advanceTo(2*l.BreakerMin - 1))
		assertSame(t, "one on trial", who, []string{"w0"})
		assertSame(t, "half open", p.g.Status(2*l.BreakerMin).Breaker, throttle.BreakerHalfOpen)
		p.requestReserved(2*l.BreakerMin, "w0", "r")
		assertSame(t, "nobody beside it", rejectedCallers(p.requestReserved(2*l.BreakerMin, "x", "r")), []throttle.RejectCaller(nil))
		p.answerCall(2*l.BreakerMin, "w0", as, 0) // it fails: longer
		assertSame(t, "closed for longer", p.g.Status(2*l.BreakerMin).ClosedMS >= 2*l.BreakerMin, true)
		at := 6 * l.BreakerMin
		who = admittedCallers(p.advanceTo(at))
		if len(who) != 1 {
			t.Fatalf("%s: on trial: %v", as, who)
		}
		p.requestReserved(at, who[0], "r")
		fx = p.applyEvent(throttle.ReplyBegan{At: at + 1, Call: who[0]})
		assertSame(t, "closed again", p.g.Status(at+1).Breaker, throttle.BreakerClosed)
		if n := publishedNotices(fx); len(n) != 0 != shared || shared && (n[0].PauseMS != 0 || n[0].Why != throttle.OK) {
			t.Errorf("%s: told %+v", as, n)
		}
	}
}

// A trial that comes to nothing (its agent was canceled, or never came) makes
// room for another one.
func TestALostTrialIsReplaced(t *testing.T) {
	l := throttle.DefaultLimits()
	p := newDriver(t, l)
	for i := range l.Failures {
		p.requestReserved(0, fmt.Sprint(i), "r")
		p.answerCall(0, fmt.Sprint(i), throttle.Overloaded, 0)
	}
	for _, who := range []string{"a", "b", "c"} {
		p.requestTurn(0, who, "r")
	}
	at := 2 * l.BreakerMin
	assertSame(t, "on trial", admittedCallers(p.advanceTo(at)), []string{"a"})
	assertSame(t, "a leaves", admittedCallers(p.applyEvent(throttle.CallerLeft{At: at, Who: "a"})), []string{"b"})
	assertSame(t, "b never comes", admittedCallers(p.advanceTo(at+l.TicketTTL)), []string{"c"})
	p.requestReserved(at+l.TicketTTL, "c", "r")
	p.requestTurn(at+l.TicketTTL, "d", "r")
	assertSame(t, "c is stopped", admittedCallers(p.answerCall(at+l.TicketTTL, "c", throttle.Neutral, 0)), []string{"d"})
}

// What another node has heard holds here too, and an end of overload as well.
func TestReportOfAnotherNodeHolds(t *testing.T) {
	one, two := newDriver(t, throttle.Limits{}), newDriver(t, throttle.Limits{})
	one.requestReserved(0, "a", "r")
	n := publishedNotices(one.answerCall(0, "a", throttle.Limited, 5000))[0]
	// The clock of the other node shows another time.
	two.applyEvent(throttle.NoticeReceived{At: 70_000, Notice: n})
	if r := rejectedCallers(two.requestReserved(70_001, "b", "r")); len(r) != 1 || r[0].AfterMS < 4999 {
		t.Fatalf("%+v", r)
	}
	two.requestTurn(70_002, "b", "r")
	assertSame(t, "while it is closed", admittedCallers(two.advanceTo(74_999)), []string(nil))
	assertSame(t, "after it", admittedCallers(two.advanceTo(76_300)), []string{"b"})

	two.applyEvent(throttle.NoticeReceived{At: 80_000, Notice: throttle.Notice{PauseMS: 60_000, Why: throttle.Overloaded}})
	two.requestTurn(80_001, "c", "r")
	assertSame(t, "the provider answers somebody", admittedCallers(two.applyEvent(throttle.NoticeReceived{At: 80_002, Notice: throttle.Notice{Why: throttle.OK}})), []string{"c"})
}

// A notice of a node that lies, or of another version, does no more harm than a
// pause of the longest kind.
func TestANoticeIsBounded(t *testing.T) {
	p := newDriver(t, throttle.Limits{})
	for _, n := range []throttle.Notice{{PauseMS: 1 << 62, Why: throttle.Limited}, {PauseMS: -5, Why: throttle.Limited}, {PauseMS: 1 << 62, Why: "x"}, {Rates: throttle.Rates{Requests: -1, Tokens: -9}, Settings: throttle.Rates{Requests: -1, Tokens: 1 << 60}}} {
		p.applyEvent(throttle.NoticeReceived{At: 0, Notice: n})
	}
	l := throttle.DefaultLimits()
	if ms := p.g.Status(0).ClosedMS; ms > l.PauseMax+l.JitterMax {
		t.Errorf("closed for %d ms", ms)
	}
}

// A request for more tokens than a minute allows is made, and owed.
func TestARequestLargerThanTheRateIsMade(t *testing.T) {
	p := newDriver(t, throttle.Limits{})
	p.applyEvent(throttle.RatesSet{At: 0, Rates: throttle.Rates{Tokens: 6000}})
	fx := p.applyEvent(throttle.CallRequested{At: 0, Who: "big", Call: "big", Run: "r", Tokens: 50_000, Reserved: true})
	assertSame(t, "the large one", admittedCallers(fx), []string{"big"})
	p.requestTurn(1, "next", "r")
	assertSame(t, "behind it", admittedCallers(p.advanceTo(400_000)), []string(nil))
	assertSame(t, "it used less", admittedCallers(p.applyEvent(throttle.CallAnswered{At: 400_001, Call: "big", Outcome: throttle.OK, Used: 100})), []string{"next"})
}

// Two futures of one gate do not touch each other.
func TestThrottleIsAValue(t *testing.T) {
	g := throttle.New(throttle.Limits{InitialWindow: 1}, 7)
	g, _ = g.Step(throttle.CallRequested{Who: "a", Call: "a", Run: "r", Reserved: true})
	one, _ := g.Step(throttle.CallRequested{Who: "b", Call: "b", Run: "r"})
	two, _ := g.Step(throttle.CallAnswered{Call: "a", Outcome: throttle.Limited, AfterMS: 1000})
	assertSame(t, "before", g.Status(0), throttle.Status{Window: 1, Flying: 1})
	assertSame(t, "one", one.Status(0), throttle.Status{Window: 1, Flying: 1, Waiting: 1})
	assertSame(t, "two", two.Status(0).Flying, 0)
}

// TestOneAgentAmongAHundredWaitsItsShare: a run of a hundred agents keeps a gate busy that
// lets four requests through at once. How long a run with one agent waits there
// is printed, and does not depend on how many the others are.
func TestOneAgentAmongAHundredWaitsItsShare(t *testing.T) {
	const call, rounds = 1000, 100 // an answer takes a second
	p := newDriver(t, throttle.Limits{InitialWindow: 4})
	asked, ends, waits := map[string]int64{}, map[string]int64{}, map[string][]int64{}
	at := int64(0)
	var take func(fx []throttle.Effect)
	take = func(fx []throttle.Effect) {
		for _, e := range fx {
			a, ok := e.(throttle.AdmitCaller)
			switch {
			case ok && a.Reserved:
				run, _, _ := strings.Cut(a.Who, "-")
				waits[run] = append(waits[run], at-asked[a.Who])
				ends[a.Who] = at + call
			case ok:
				take(p.requestReserved(at, a.Who, strings.Split(a.Who, "-")[0]))
			}
		}
	}
	for i := range 100 {
		take(p.requestTurn(at, fmt.Sprintf("crowd-%d", i), "crowd"))
	}
	take(p.requestTurn(at, "lonely-0", "lonely"))
	for len(waits["lonely"]) < rounds {
		who := ""
		for w, end := range ends {
			if who == "" || end < ends[who] || end == ends[who] && w < who {
				who = w
			}
		}
		at = ends[who]
		delete(ends, who)
		take(p.answerCall(at, who, throttle.OK, 0))
		asked[who] = at
		run, _, _ := strings.Cut(who, "-")
		take(p.requestTurn(at, who, run))
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
