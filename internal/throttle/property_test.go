package throttle_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/troupe-run/troupe/internal/throttle"
)

// crowdModel is agents of several runs before one gate, with an outside judge: what
// the provider has said, who waits since when, what is under way.
type crowdModel struct {
	t      *rapid.T
	g      throttle.Throttle
	l      throttle.Limits
	at     int64
	agents map[string]*crowdCaller
	closed int64 // by the provider's own words: nothing may begin before
	calls  int
	// admissions of other runs since a run's first came to wait
	since map[string]map[string]int
	prio  map[string]throttle.Priority // of runs
}

type crowdCaller struct {
	run, call string
	stage     string // "", holding, waiting, invited, flying
	asked     int64
	ends      int64 // of its invitation
	guest     bool  // it comes with one
	trial     bool  // it is flying on trial
}

func (c *crowdModel) applyEvent(e throttle.Event) {
	next, fx := c.g.Step(e)
	c.g = next
	if c.g.Status(c.at).Breaker != throttle.BreakerHalfOpen {
		for _, v := range c.agents {
			v.trial = false
		}
	}
	for _, f := range fx {
		switch f := f.(type) {
		case throttle.AdmitCaller:
			c.checkAdmission(f)
		case throttle.RejectCaller:
			v := c.agents[f.Who]
			v.guest = false
			if v.stage != "holding" || f.Call != v.call || f.AfterMS <= 0 {
				c.t.Fatalf("%d: %s is %s and is refused: %+v", c.at, f.Who, v.stage, f)
			}
			v.stage = ""
		case throttle.PublishNotice:
			if f.PauseMS < 0 || f.PauseMS > c.l.PauseMax && f.PauseMS > c.l.BreakerMax {
				c.t.Fatalf("told %+v", f)
			}
		}
	}
	c.updateWaiting()
}

func (c *crowdModel) checkAdmission(f throttle.AdmitCaller) {
	v := c.agents[f.Who]
	if c.at < c.closed {
		c.t.Fatalf("%d: %s is let in, and the provider said to wait until %d", c.at, f.Who, c.closed)
	}
	switch {
	case f.Reserved && f.Call == v.call && (v.stage == "holding" || v.stage == "invited"):
		v.stage = "flying"
		c.checkTrial(f.Who, v)
	case !f.Reserved && v.stage == "waiting":
		v.stage, v.ends = "invited", c.at+c.l.TicketTTL
	default:
		c.t.Fatalf("%d: %s is %s and is let in: %+v", c.at, f.Who, v.stage, f)
	}
	delete(c.since, v.run)
	if f.Reserved && v.guest {
		v.guest = false // its turn was when it was invited
		return
	}
	for run, others := range c.since {
		if c.prio[run] != c.prio[v.run] {
			continue // TestPrioritiesStarveNoRun counts these turns
		}
		if others[v.run]++; others[v.run] > 1 {
			c.t.Fatalf("%d: %s was let in %d times while %s waited", c.at, v.run, others[v.run], run)
		}
	}
}

// updateWaiting begins to watch over the runs that have come to wait.
func (c *crowdModel) updateWaiting() {
	waiting := map[string]bool{}
	for _, v := range c.agents {
		if v.stage == "waiting" || v.stage == "holding" {
			waiting[v.run] = true
			if c.since[v.run] == nil {
				c.since[v.run] = map[string]int{}
			}
		}
		if v.stage == "invited" && c.at >= v.ends {
			v.stage = ""
		}
		if v.stage == "holding" && c.at > v.asked+c.l.QueueMax {
			c.t.Fatalf("%d: it holds a lease since %d", c.at, v.asked)
		}
	}
	for run := range c.since {
		if !waiting[run] {
			delete(c.since, run)
		}
	}
}

// checkTrial: while the breaker is half open one request at a time begins.
func (c *crowdModel) checkTrial(who string, v *crowdCaller) {
	b := c.g.Status(c.at)
	for other, o := range c.agents {
		if b.Breaker == throttle.BreakerHalfOpen && o != v && o.trial && o.stage == "flying" {
			c.t.Fatalf("%d: %s is let in beside the trial of %s: %+v", c.at, who, other, b)
		}
	}
	v.trial = b.Breaker == throttle.BreakerHalfOpen
}

// advanceTime lets time go on, with every TimePassed that the throttle wants.
func (c *crowdModel) advanceTime(ms int64) {
	end := c.at + ms
	for range 100_000 {
		next, ok := c.g.NextTick()
		if !ok || next > end {
			c.at = end
			if _, fx := c.g.Step(throttle.TimePassed{At: end}); (!ok || next > end+1) && len(admittedCallers(fx)) > 0 { // a tick may be 1 ms late by rounding
				c.t.Fatalf("%d: %v could begin, and no tick was due", end, admittedCallers(fx))
			}
			c.applyEvent(throttle.TimePassed{At: end})
			return
		}
		c.at = next
		c.applyEvent(throttle.TimePassed{At: next})
	}
	c.t.Fatal("the gate never rests")
}

func (c *crowdModel) takeRandomAction(t *rapid.T) {
	who := fmt.Sprint("a", rapid.IntRange(0, 19).Draw(t, "who"))
	v := c.agents[who]
	switch rapid.IntRange(0, 9).Draw(t, "what") {
	case 0, 1, 2:
		c.requestCall(who, v, rapid.Bool().Draw(t, "held"))
	case 3, 4, 5:
		if v.stage == "flying" {
			c.answerCall(t, v)
		}
	case 6:
		if v.stage == "waiting" || v.stage == "invited" || v.stage == "holding" {
			v.stage = ""
			c.applyEvent(throttle.CallerLeft{At: c.at, Who: who})
		}
	case 7:
		n := throttle.Notice{PauseMS: int64(rapid.IntRange(0, 5000).Draw(t, "pause")), Why: rapid.SampledFrom([]throttle.CallOutcome{throttle.Limited, throttle.Overloaded, throttle.OK}).Draw(t, "why")}
		if n.Why != throttle.OK {
			c.closed = max(c.closed, c.at+n.PauseMS)
		} else if n.PauseMS == 0 {
			c.closed = 0 // it may be what overload had closed; the judge does not tell the two apart
		}
		c.applyEvent(throttle.NoticeReceived{At: c.at, Notice: n})
	case 8:
		c.advanceTime(int64(rapid.IntRange(1, 4000).Draw(t, "ms")))
	default:
		c.applyEvent(throttle.NodeCountSet{At: c.at, Nodes: rapid.IntRange(1, 4).Draw(t, "nodes")})
	}
}

func (c *crowdModel) requestCall(who string, v *crowdCaller, held bool) {
	switch {
	case v.stage == "" && !held:
		v.stage, v.call = "waiting", ""
	case v.stage == "" || v.stage == "invited" && held:
		c.calls++
		v.guest = v.stage == "invited"
		v.stage, v.call, v.asked = "holding", fmt.Sprint(who, "#", c.calls), c.at
	default:
		return
	}
	c.applyEvent(throttle.CallRequested{At: c.at, Who: who, Call: v.call, Run: v.run, Priority: c.prio[v.run], Tokens: 50, Reserved: v.stage == "holding"})
}

func (c *crowdModel) answerCall(t *rapid.T, v *crowdCaller) {
	as := rapid.SampledFrom([]throttle.CallOutcome{throttle.OK, throttle.OK, throttle.OK, throttle.Limited, throttle.Overloaded, throttle.Failed, throttle.Neutral}).Draw(t, "as")
	after := int64(0)
	if as == throttle.Limited || as == throttle.Overloaded {
		after = int64(rapid.SampledFrom([]int{0, 1, 700, 20_000, 1 << 40}).Draw(t, "after"))
		c.closed = max(c.closed, c.at+min(after, c.l.PauseMax))
	}
	v.stage = ""
	c.applyEvent(throttle.CallAnswered{At: c.at, Call: v.call, Outcome: as, AfterMS: after})
}

// Whatever happens: nothing begins while the provider said to wait, one request
// at a time is on trial, nobody holds a reservation for longer than QueueMax, no run is let
// in twice while another one of its priority waits, nobody could begin between two ticks, and once nothing is refused
// any more everybody who waits has a turn.
//
//behaviour:shows G6
func TestThrottleInvariantsWithRandomCallers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &crowdModel{t: t, l: throttle.DefaultLimits(), agents: map[string]*crowdCaller{}, since: map[string]map[string]int{}, prio: map[string]throttle.Priority{}}
		c.l.InitialWindow = rapid.SampledFrom([]int{1, 2, 8, 1024}).Draw(t, "window")
		c.g = throttle.New(c.l, rapid.Uint64().Draw(t, "seed"))
		for i := range 20 { // a0 is alone in its run
			c.agents[fmt.Sprint("a", i)] = &crowdCaller{run: fmt.Sprint("run", min(i, 1)+i/12)}
		}
		for run := range 3 { // "": normal
			c.prio[fmt.Sprint("run", run)] = rapid.SampledFrom([]throttle.Priority{"", throttle.PriorityHigh, throttle.PriorityLow}).Draw(t, "priority")
		}
		if rapid.Bool().Draw(t, "ruled") {
			c.applyEvent(throttle.RatesSet{Rates: throttle.Rates{Requests: int64(rapid.IntRange(20, 600).Draw(t, "requests")), Tokens: int64(rapid.IntRange(2000, 60_000).Draw(t, "tokens"))}})
		}
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			c.takeRandomAction(t)
		}
		c.drainCallers()
	})
}

// drainCallers: from here on everything is answered, and everybody has a turn.
func (c *crowdModel) drainCallers() {
	served := map[string]bool{}
	for range 2000 {
		c.advanceTime(1000)
		for i := range 20 {
			who := fmt.Sprint("a", i)
			switch v := c.agents[who]; {
			case v.stage == "flying":
				v.stage, served[who] = "", true
				c.applyEvent(throttle.CallAnswered{At: c.at, Call: v.call, Outcome: throttle.OK})
			case v.stage == "invited":
				c.requestCall(who, v, true)
			case v.stage == "" && !served[who]:
				c.requestCall(who, v, false)
			}
		}
		if len(served) == 20 {
			return
		}
	}
	c.t.Fatalf("only %d of 20 had a turn: %+v", len(served), c.g.Status(c.at))
}
