//go:build browser

package browser

import (
	"context"
	"fmt"
	"testing"

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
	var held int
	s.do("locks", chromedp.Evaluate(`navigator.locks.query().then(l => l.held.filter(h => h.name.startsWith("troupe.stream.")).length)`, &held, awaitPromise))
	if held != 3 {
		t.Errorf("%d tabs have streams, not 3", held)
	}
	s.cli("budget", run, "set", "--max-tokens", "345678")
	for i, tab := range tabs {
		tab.do(fmt.Sprint("tab ", i+1, " reads a new event"), tab.sees("345678"))
	}
	streaming := 0
	for i, tab := range tabs {
		var live bool
		tab.do("live", chromedp.Evaluate(`!!document.querySelector(".status.live")`, &live))
		if live {
			streaming++
			tab.do(fmt.Sprint("tab ", i+1, " is hidden"), show(false), tab.sees("paused while the tab is hidden"))
		}
	}
	if streaming != 3 {
		t.Errorf("%d tabs stream, not 3", streaming)
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
