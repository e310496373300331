package throttle_test

import (
	"testing"

	"github.com/troupe-run/troupe/internal/throttle"
)

// What says that an overload is over says nothing about a limit: a pause that
// was asked for with a rate limit is not taken back by it.
func TestTheEndOfAnOverloadEndsNoPauseOfALimit(t *testing.T) {
	t.Run("heard from another node", func(t *testing.T) {
		p := newDriver(t, throttle.Limits{JitterMax: 1})
		p.applyEvent(throttle.NoticeReceived{At: 0, Notice: throttle.Notice{PauseMS: 1000, Why: throttle.Overloaded}})
		p.applyEvent(throttle.NoticeReceived{At: 10, Notice: throttle.Notice{PauseMS: 30_000, Why: throttle.Limited}})
		p.applyEvent(throttle.NoticeReceived{At: 2000, Notice: throttle.Notice{Why: throttle.OK}})
		if who := admittedCallers(p.requestReserved(2001, "a", "r")); len(who) > 0 {
			t.Errorf("%v is let in 28 s before the end of the pause: %+v", who, p.g.Status(2001))
		}
	})
	t.Run("while a request is on trial", func(t *testing.T) {
		p := newDriver(t, throttle.Limits{JitterMax: 1, Failures: 1})
		for _, who := range []string{"early", "b", "c", "d", "e"} {
			p.requestReserved(0, who, "r")
		}
		p.answerCall(1, "b", throttle.Overloaded, 0) // the provider's own word opens the breaker
		for _, who := range []string{"c", "d", "e"} {
			p.answerCall(2, who, throttle.Neutral, 0)
		}
		p.advanceTo(3000)
		if who := admittedCallers(p.requestReserved(3000, "trial", "r")); len(who) != 1 {
			t.Fatalf("no trial: %+v", p.g.Status(3000))
		}
		p.answerCall(3010, "early", throttle.Limited, 30_000)
		if n := publishedNotices(p.applyEvent(throttle.ReplyBegan{At: 3020, Call: "trial"})); len(n) > 0 {
			t.Errorf("the pause of the others is taken back: %+v", n)
		}
	})
}
