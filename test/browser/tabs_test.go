//go:build browser

package browser

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

func awaitPromise(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }

// newTab opens another tab of the same browser, in a window of its own.
func (s *stage) newTab(name string) *stage {
	s.t.Helper()
	var id target.ID
	s.do("open "+name, chromedp.ActionFunc(func(ctx context.Context) (err error) {
		id, err = target.CreateTarget("about:blank").WithNewWindow(true).Do(cdp.WithExecutor(ctx, chromedp.FromContext(ctx).Browser))
		return err
	}))
	ctx, cancel := chromedp.NewContext(s.ctx, chromedp.WithTargetID(id))
	s.t.Cleanup(cancel)
	tab := *s
	tab.ctx = ctx
	if err := chromedp.Run(ctx); err != nil {
		s.t.Fatal(err)
	}
	s.listen(ctx)
	return &tab
}

// isAt checks the address of the tab.
func (s *stage) isAt(hash string) {
	s.t.Helper()
	var now string
	s.do("address", chromedp.Evaluate("location.hash", &now))
	if now != hash {
		s.t.Errorf("the address is %s, not %s", now, hash)
	}
}

// show makes the page believe that its tab is hidden, or visible.
func show(visible bool) chromedp.Action {
	return chromedp.Evaluate(fmt.Sprintf(`Object.defineProperty(document, "hidden", {value: %t, configurable: true}); document.dispatchEvent(new Event("visibilitychange"))`, !visible), nil)
}

// Eight visible tabs follow a run, and each is served: a browser opens about six connections to a node. A hidden tab
// has no stream, and misses nothing.
func TestManyTabsFollowOneRun(t *testing.T) {
	s := newStage(t)
	s.signIn()
	run := s.start(s.script(slowRun), "wait")
	tabs := []*stage{s}
	for i := 2; i <= 8; i++ {
		tabs = append(tabs, s.newTab(fmt.Sprint("tab ", i)))
	}
	current := `document.querySelector(".status.live, .status.polling")`
	for i, tab := range tabs {
		tab.do(fmt.Sprint("tab ", i+1, " follows"), chromedp.Navigate("http://"+s.address+"/#/run/"+run+"/events"), show(true), chromedp.Poll(current, nil))
	}
	// A stream that breaks on a busy machine is opened again, by this tab or by one that polled.
	s.do("three tabs have streams", chromedp.Poll(`navigator.locks.query().then(l => l.held.filter(h => h.name.startsWith("troupe.stream.")).length === 3)`, nil))
	s.cli("budget", run, "set", "--max-tokens", "345678")
	for i, tab := range tabs {
		tab.do(fmt.Sprint("tab ", i+1, " reads a new event"), tab.sees("345678"))
	}
	for i, tab := range streaming(t, tabs, 3) {
		tab.do(fmt.Sprint("streaming tab ", i+1, " is hidden"), show(false), tab.sees("paused while the tab is hidden"))
	}
	s.cli("cancel", run, "--now")
	for _, tab := range tabs {
		tab.do("visible", show(true))
	}
	for i, tab := range tabs {
		tab.do(fmt.Sprint("tab ", i+1, " reads the end"), chromedp.Poll(`document.querySelector(".status.ended")`, nil))
		tab.compareEvents(run)
	}
}

// streaming waits until exactly so many of the tabs have a stream, and returns them.
func streaming(t *testing.T, tabs []*stage, want int) (live []*stage) {
	t.Helper()
	for end := time.Now().Add(stepTimeout); time.Now().Before(end); {
		live = nil
		for _, tab := range tabs {
			var is bool
			tab.do("live", chromedp.Evaluate(`!!document.querySelector(".status.live")`, &is))
			if is {
				live = append(live, tab)
			}
		}
		if len(live) == want {
			return live
		}
	}
	t.Fatalf("%d tabs stream, not %d", len(live), want)
	return nil
}
