//go:build browser

package browser

import (
	"fmt"
	"math"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// A person drags over a part of the timeline, which is then shown alone; the key 0 shows all again.
func TestTimelineIsZoomedByDragging(t *testing.T) {
	s := newStage(t)
	s.signIn()
	run := s.start(s.script("default: [{text: done, delay: 1s}]"), "paint")
	s.cli("result", "--wait", run)
	var area struct{ Left, Top, Width, Height float64 }
	s.do("the timeline", chromedp.Evaluate(`location.hash = "#/run/`+run+`/timeline"`, nil), chromedp.WaitVisible(".plot .u-over"),
		chromedp.Evaluate(`(r => ({Left: r.left, Top: r.top, Width: r.width, Height: r.height}))(document.querySelector(".plot .u-over").getBoundingClientRect())`, &area))
	at := func(kind input.MouseType, part float64) chromedp.Action {
		return chromedp.MouseEvent(kind, area.Left+part*area.Width, area.Top+area.Height/2, chromedp.ButtonLeft, chromedp.ClickCount(1))
	}
	s.do("a drag", chromedp.MouseEvent(input.MouseMoved, area.Left+area.Width/4, area.Top+area.Height/2), at(input.MousePressed, 0.25), at(input.MouseMoved, 0.3), at(input.MouseMoved, 0.4), at(input.MouseMoved, 0.5), at(input.MouseReleased, 0.5))
	var shown string
	var from, to float64
	s.do("a part is shown", chromedp.Poll(`document.querySelector(".plot").dataset.zoom`, &shown))
	if _, err := fmt.Sscanf(shown, "%f %f", &from, &to); err != nil || from <= 0 || to <= from || math.Abs(to-2*from) > 0.02 {
		t.Errorf("from a quarter to a half is %q: %v", shown, err)
	}
	s.do("all is shown", press("0"), chromedp.Poll(`!document.querySelector(".plot").dataset.zoom`, nil))
}
