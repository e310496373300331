package throttle_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/troupe-run/troupe/internal/throttle"
)

func requestsOf(n int64) throttle.Rates { return throttle.Rates{Requests: n} }

// reportRates makes one call whose answer reports rates.
func (p *testDriver) reportRates(at int64, r throttle.RateReport) []throttle.Effect {
	call := fmt.Sprint("report-", at)
	p.applyEvent(throttle.CallRequested{At: at, Who: call, Call: call, Run: "r", Reserved: true})
	return p.applyEvent(throttle.CallAnswered{At: at, Call: call, Outcome: throttle.OK, Report: r})
}

// countSent lets callers without end send requests until a time, and returns how many were sent.
func (p *testDriver) countSent(from, until int64) (n int) {
	p.t.Helper()
	asked := 0
	take := func(at int64, fx []throttle.Effect) {
		for _, who := range admittedCallers(fx) {
			n++
			p.requestReserved(at, who, "r")
			p.answerCall(at, who, throttle.OK, 0)
		}
	}
	for at := from; at < until; {
		for p.g.Status(at).Waiting < 3 {
			take(at, p.requestTurn(at, fmt.Sprint("w", asked), "r"))
			if asked++; asked > 100_000 {
				p.t.Fatal("there is no limit")
			}
		}
		next, ok := p.g.NextTick()
		if !ok || next >= until {
			break
		}
		at = next
		take(at, p.applyEvent(throttle.TimePassed{At: at}))
	}
	return n
}

// The lowest of the own setting, the settings of other nodes and what the provider reports counts, so a
// header never raises what a setting limits.
//
//behaviour:shows G6
func TestStrictestRateCounts(t *testing.T) {
	for _, c := range []struct{ set, peer, reported, want int64 }{
		{60, 0, 500, 60}, {60, 0, 30, 30}, {0, 0, 30, 30}, {0, 20, 30, 20}, {60, 20, 0, 20}, {10, 20, 30, 10}, {60, 0, -5, 60}, {60, 0, 1 << 62, 60}, {0, 0, 0, 0},
	} {
		p := newDriver(t, throttle.Limits{})
		p.applyEvent(throttle.RatesSet{Rates: requestsOf(c.set)})
		p.applyEvent(throttle.NoticeReceived{Notice: throttle.Notice{Settings: requestsOf(c.peer)}})
		p.reportRates(0, throttle.RateReport{Rates: requestsOf(c.reported), RequestsLeft: c.reported})
		if got := p.g.Status(0).Requests; got != c.want {
			t.Errorf("%+v: %d requests a minute", c, got)
		}
		if c.want == 0 {
			continue
		}
		if n := int64(p.countSent(1, 60_001)); n > c.want || n < c.want*8/10-1 {
			t.Errorf("%+v: %d requests in a minute", c, n)
		}
	}
}

// Each node keeps its share of a rate, whole requests where there are enough of them.
func TestRatesAreShared(t *testing.T) {
	for _, c := range []struct{ nodes, rate, least, most int }{{1, 600, 570, 600}, {3, 600, 190, 200}, {4, 10, 2, 2}, {1, 1, 1, 1}, {20, 10, 1, 1}} {
		p := newDriver(t, throttle.Limits{})
		p.applyEvent(throttle.NodeCountSet{At: 0, Nodes: c.nodes})
		p.applyEvent(throttle.RatesSet{Rates: requestsOf(int64(c.rate))})
		if n := p.countSent(0, 60_000); n < c.least || n > c.most {
			t.Errorf("%+v: %d requests in a minute", c, n)
		}
	}
}

// Rates of others count for a time: the settings of a node that is gone for two minutes, what a provider
// reported for a day.
//
//behaviour:shows G6
func TestRatesOfOthersAreForgotten(t *testing.T) {
	l := throttle.DefaultLimits()
	for _, c := range []struct {
		notice throttle.Notice
		until  int64
	}{
		{throttle.Notice{Rates: throttle.Rates{Requests: 1, Tokens: -9}}, l.ReportTTL}, {throttle.Notice{Rates: throttle.Rates{Requests: -1, Tokens: 1}}, l.ReportTTL},
		{throttle.Notice{Settings: requestsOf(1)}, l.SettingsTTL},
	} {
		p := newDriver(t, throttle.Limits{})
		p.applyEvent(throttle.NoticeReceived{At: 0, Notice: c.notice})
		if p.g.IsIdle(0) {
			t.Errorf("%+v: forgotten at once", c.notice)
		}
		if at, ok := p.g.NextTick(); !ok || at != c.until {
			t.Errorf("%+v: looked at again at %d, %v", c.notice, at, ok)
		}
		p.applyEvent(throttle.TimePassed{At: c.until})
		if !p.g.IsIdle(c.until) {
			t.Errorf("%+v: it counts for ever", c.notice)
		}
	}
	p := newDriver(t, throttle.Limits{})
	p.applyEvent(throttle.RatesSet{Rates: requestsOf(600)})
	p.applyEvent(throttle.NoticeReceived{At: 0, Notice: throttle.Notice{Settings: requestsOf(6)}})
	p.applyEvent(throttle.NoticeReceived{At: l.SettingsTTL / 2, Notice: throttle.Notice{Settings: requestsOf(60)}}) // another node: it does not renew the lower one
	assertSame(t, "the lowest", p.g.Status(l.SettingsTTL/2).Requests, 6)
	p.applyEvent(throttle.TimePassed{At: l.SettingsTTL})
	assertSame(t, "its own", p.g.Status(l.SettingsTTL).Requests, 600)
}

// What the provider has left for all nodes is shared like the rate: other programs may use the key, too.
func TestWhatIsLeftIsShared(t *testing.T) {
	p := newDriver(t, throttle.Limits{})
	p.applyEvent(throttle.NodeCountSet{Nodes: 2})
	p.reportRates(0, throttle.RateReport{Rates: requestsOf(6000), RequestsLeft: 4})
	n := 0
	for i := range 10 {
		n += len(admittedCallers(p.requestTurn(1, fmt.Sprint(i), "r")))
	}
	assertSame(t, "at once", n, 2)
	p.reportRates(60_000, throttle.RateReport{Rates: requestsOf(6000), RequestsLeft: -7})
	assertSame(t, "of nothing", len(admittedCallers(p.requestTurn(60_000, "x", "r"))), 0)
}

// The other nodes learn of a report once, of another one after a while, and of settings again and again.
//
//behaviour:shows G6
func TestRatesArePublished(t *testing.T) {
	l := throttle.DefaultLimits()
	p := newDriver(t, throttle.Limits{})
	report := func(at, n int64) []throttle.Notice {
		return publishedNotices(p.reportRates(at, throttle.RateReport{Rates: requestsOf(n), RequestsLeft: n}))
	}
	if got := report(1000, 50); len(got) != 1 || got[0] != (throttle.Notice{Rates: requestsOf(50)}) {
		t.Fatalf("told %+v", got)
	}
	told := 0
	for i := range int64(41) {
		told += len(report(1001+i*100, 50+i%2)) // it cannot decide
	}
	assertSame(t, "told within 4 s", told, 0)
	assertSame(t, "told after 10 s", len(report(12_000, 70)), 1)
	assertSame(t, "the same again", len(report(30_000, 70)), 0)
	assertSame(t, "half a day later", len(report(30_000+l.ReportTTL/2, 70)), 1)

	p = newDriver(t, throttle.Limits{})
	if got := publishedNotices(p.applyEvent(throttle.RatesSet{At: 5, Rates: requestsOf(60)})); len(got) != 1 || got[0] != (throttle.Notice{Settings: requestsOf(60)}) {
		t.Fatalf("told %+v", got)
	}
	at, ok := p.g.NextTick()
	if !ok || at != 5+l.SettingsTTL/2 {
		t.Errorf("told again at %d", at)
	}
	assertSame(t, "told again", len(publishedNotices(p.applyEvent(throttle.TimePassed{At: at}))), 1)
	if got := publishedNotices(p.applyEvent(throttle.NoticeReceived{At: at + 1, Notice: throttle.Notice{Rates: requestsOf(9)}})); len(got) > 0 {
		t.Errorf("an echo: %+v", got)
	}
	// A notice about rates says nothing about an overload, and repeats a pause.
	p.requestReserved(at+2, "a", "r")
	p.answerCall(at+2, "a", throttle.Limited, 100_000)
	got := publishedNotices(p.applyEvent(throttle.TimePassed{At: at + l.SettingsTTL/2}))
	if len(got) != 1 || got[0].Why != throttle.Limited || got[0].PauseMS != 100_002-l.SettingsTTL/2 {
		t.Errorf("%+v", got)
	}
}

// A request that must wait for the minute is sent away for as long, with the reason.
func TestRequestOverTheRateIsToldHowLong(t *testing.T) {
	p := newDriver(t, throttle.Limits{})
	p.applyEvent(throttle.RatesSet{Rates: requestsOf(2)})
	p.requestReserved(0, "a", "r")
	p.requestReserved(0, "b", "r")
	r := rejectedCallers(p.advanceTo(throttle.DefaultLimits().QueueMax))
	if len(r) != 1 || r[0].Who != "b" || r[0].Why != throttle.OverRate || r[0].AfterMS < 28_999 || r[0].AfterMS > 29_001 {
		t.Errorf("%+v", r)
	}
}

// minuteJudge counts what was sent in each minute.
type minuteJudge struct {
	*testDriver
	rt    *rapid.T
	sent  []int64 // times
	used  []int64 // tokens of each
	call  int
	state map[string]string // by caller: waiting, invited, holding, or the name of its call
}

func (j *minuteJudge) apply(at int64, e throttle.Event) {
	for _, fx := range j.applyEvent(e) {
		switch fx := fx.(type) {
		case throttle.AdmitCaller:
			if !fx.Reserved {
				j.state[fx.Who] = "invited"
				continue
			}
			j.state[fx.Who] = fx.Call
			j.sent, j.used = append(j.sent, at), append(j.used, tokensOf(fx.Who))
		case throttle.RejectCaller:
			j.state[fx.Who] = ""
		}
	}
}

// tokensOf are the tokens of a caller's requests.
func tokensOf(who string) int64 { return 10 + 20*int64(who[0]-'a') }

// check checks the minute that ends with the newest request. Of tokens one request may exceed what may be spent at once.
func (j *minuteJudge) check(share throttle.Rates) {
	for first := range j.sent {
		var n, tokens int64
		for i := first; i < len(j.sent) && j.sent[i] < j.sent[first]+60_000; i++ {
			n, tokens = n+1, tokens+j.used[i]
		}
		if share.Requests > 0 && n > share.Requests {
			j.rt.Fatalf("%d requests in the minute from %d, and the share is %d: %v", n, j.sent[first], share.Requests, j.sent)
		}
		if share.Tokens > 0 && tokens > share.Tokens+tokensOf("f") {
			j.rt.Fatalf("%d tokens in the minute from %d, and the share is %d", tokens, j.sent[first], share.Tokens)
		}
	}
}

// Whatever callers do, how long they take with a ticket and what the provider answers: in no minute a node sends more
// than its share of the rates.
//
//behaviour:shows G6
func TestNeverMoreInAMinuteThanTheRate(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		j := &minuteJudge{testDriver: newDriver(t, throttle.Limits{InitialWindow: 50}), rt: rt, state: map[string]string{}}
		nodes := rapid.Int64Range(1, 4).Draw(rt, "nodes")
		share := throttle.Rates{Requests: rapid.Int64Range(0, 40).Draw(rt, "requests"), Tokens: rapid.Int64Range(0, 40).Draw(rt, "tokens") * 50}
		rates := throttle.Rates{Requests: share.Requests*nodes + rapid.Int64Range(0, nodes-1).Draw(rt, "rest"), Tokens: share.Tokens * nodes}
		if share.Requests == 0 {
			rates.Requests = 0
		}
		j.applyEvent(throttle.NodeCountSet{Nodes: int(nodes)})
		if rapid.Bool().Draw(rt, "reported") {
			j.applyEvent(throttle.NoticeReceived{Notice: throttle.Notice{Rates: rates}})
		} else {
			j.applyEvent(throttle.RatesSet{Rates: rates})
		}
		at := int64(0)
		for range rapid.IntRange(1, 400).Draw(rt, "steps") {
			who := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}).Draw(rt, "who")
			switch s := j.state[who]; {
			case rapid.IntRange(0, 3).Draw(rt, "pass") == 0:
				for until := at + rapid.Int64Range(1, 9000).Draw(rt, "ms"); at < until; {
					next, ok := j.g.NextTick()
					if at = until; ok && next < until {
						at = next
					}
					j.apply(at, throttle.TimePassed{At: at})
				}
			case s == "":
				j.call++
				reserved, call := rapid.Bool().Draw(rt, "reserved"), fmt.Sprint(who, j.call)
				if j.state[who] = "waiting"; reserved {
					j.state[who] = "holding"
				}
				j.apply(at, throttle.CallRequested{At: at, Who: who, Call: call, Run: who, Tokens: tokensOf(who), Reserved: reserved})
			case s == "invited":
				j.call++
				j.state[who] = "holding"
				j.apply(at, throttle.CallRequested{At: at, Who: who, Call: fmt.Sprint(who, j.call), Run: who, Tokens: tokensOf(who), Reserved: true})
			case s == "waiting" || s == "holding":
			default:
				j.state[who] = ""
				as := rapid.SampledFrom([]throttle.CallOutcome{throttle.OK, throttle.OK, throttle.OK, throttle.Neutral, throttle.Limited}).Draw(rt, "as")
				j.apply(at, throttle.CallAnswered{At: at, Call: s, Outcome: as, Used: tokensOf(who)})
			}
		}
		j.check(share)
	})
}

// A provider, or a gateway before it, that once reports a rate of one token or a huge usage stops a model for some minutes,
// not for days: the next call brings the rates of then.
func TestAttackReportsStopAModelForMinutesOnly(t *testing.T) {
	for name, attack := range map[string]func(p *testDriver){
		"a rate of one token": func(p *testDriver) {
			p.reportRates(0, throttle.RateReport{Rates: throttle.Rates{Tokens: 1}, TokensLeft: 1})
			p.applyEvent(throttle.CallRequested{At: 1, Who: "large", Call: "large", Run: "r", Tokens: 8000, Reserved: true})
		},
		"a huge usage, and then a low rate": func(p *testDriver) {
			p.applyEvent(throttle.RatesSet{At: 0, Rates: throttle.Rates{Tokens: 400_000}})
			p.applyEvent(throttle.CallRequested{At: 1, Who: "large", Call: "large", Run: "r", Tokens: 8000, Reserved: true})
			p.applyEvent(throttle.CallAnswered{At: 2, Call: "large", Outcome: throttle.OK, Used: 4 << 32, Report: throttle.RateReport{Rates: throttle.Rates{Tokens: 1}, TokensLeft: 1}})
		},
		"a huge usage": func(p *testDriver) {
			p.applyEvent(throttle.RatesSet{Rates: throttle.Rates{Tokens: 400_000}})
			p.applyEvent(throttle.CallRequested{At: 1, Who: "large", Call: "large", Run: "r", Tokens: 8000, Reserved: true})
			p.applyEvent(throttle.CallAnswered{At: 2, Call: "large", Outcome: throttle.OK, Used: 4 << 32})
		},
	} {
		p := newDriver(t, throttle.Limits{})
		attack(p)
		p.requestTurn(3, "next", "r")
		admitted := admittedCallers(p.advanceTo(15 * 60_000))
		if len(admitted) == 0 {
			t.Errorf("%s: the next call waits for more than 15 minutes", name)
		}
	}
}

// Each kind of setting of other nodes counts for as long as it is published.
func TestSettingsOfTwoNodesDoNotEndEachOther(t *testing.T) {
	p := newDriver(t, throttle.Limits{})
	for at := int64(0); at <= 600_000; at += 60_000 {
		p.applyEvent(throttle.NoticeReceived{At: at, Notice: throttle.Notice{Settings: throttle.Rates{Requests: 10}}})
		p.applyEvent(throttle.NoticeReceived{At: at + 30_000, Notice: throttle.Notice{Settings: throttle.Rates{Tokens: 100}}})
		if s := p.g.Status(at + 59_000); s.Rates != (throttle.Rates{Requests: 10, Tokens: 100}) {
			t.Fatalf("at %d: %+v", at+59_000, s.Rates)
		}
	}
}

// A node that has heard that an overload is over does not announce it again with its rates.
func TestOverloadThatIsOverIsNotAnnouncedAgain(t *testing.T) {
	p := newDriver(t, throttle.Limits{})
	p.applyEvent(throttle.NoticeReceived{At: 0, Notice: throttle.Notice{PauseMS: 60_000, Why: throttle.Overloaded}})
	p.applyEvent(throttle.NoticeReceived{At: 10, Notice: throttle.Notice{Why: throttle.OK}})
	for _, e := range p.reportRates(20, throttle.RateReport{Rates: requestsOf(50), RequestsLeft: 50}) {
		if n, ok := e.(throttle.PublishNotice); ok && (n.Notice.PauseMS > 0 || n.Notice.Why == throttle.Overloaded) {
			t.Errorf("%+v", n.Notice)
		}
	}
}
