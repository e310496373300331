//go:build browser

package browser

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

var (
	pageTeams = flag.Int("page.teams", 10, "TestLargeRunStaysSmooth: teams of 100 agents")
	pageWatch = flag.Duration("page.watch", 4*time.Second, "TestLargeRunStaysSmooth: how long the page is watched while events arrive")
	pageRead  = flag.Duration("page.read", time.Minute, "TestLargeRunStaysSmooth: how long the page may take to read all events")
)

// recordFrames records in a page when its tree is drawn, each frame, and the tasks that took longer than 50 ms.
const recordFrames = `
window.seen = {first: 0, frames: [], draws: 0, tasks: []};
new PerformanceObserver((list) => { for (const e of list.getEntries()) seen.tasks.push([e.startTime, e.duration]); }).observe({type: "longtask", buffered: true});
(function frame(now) {
  if (now) seen.frames.push(now);
  if (!seen.first && document.querySelectorAll(".row").length > 10) seen.first = performance.now();
  requestAnimationFrame(frame);
})(0);
new MutationObserver(() => { seen.draws++; }).observe(document, {subtree: true, childList: true, characterData: true});
`

// frames are what a page did in a time.
type frames struct {
	Seconds float64 // of it
	Frames  int
	Draws   int     // times that the page changed
	Worst   float64 // milliseconds of the longest frame
	Over    int     // frames over 50 ms
	Tasks   int     // tasks over 50 ms
	Longest float64 // milliseconds of the longest such task
}

func (f frames) String() string {
	return fmt.Sprintf("%.1f frames and %.1f changes a second, the longest frame %.0f ms, %d over 50 ms; %d tasks over 50 ms, the longest %.0f ms", float64(f.Frames)/f.Seconds, float64(f.Draws)/f.Seconds, f.Worst, f.Over, f.Tasks, f.Longest)
}

// takeFrames returns what was recorded since the last call.
func (s *stage) takeFrames() (f frames) {
	s.t.Helper()
	s.do("frames", chromedp.Evaluate(`(() => {
  const at = seen.frames, gaps = at.slice(1).map((t, i) => t - at[i]), tasks = seen.tasks.map((t) => t[1]);
  const f = {Seconds: (at.at(-1) - at[0]) / 1000, Frames: gaps.length, Draws: seen.draws, Worst: Math.max(0, ...gaps), Over: gaps.filter((g) => g > 50.5).length, Tasks: tasks.length, Longest: Math.max(0, ...tasks)};
  seen.frames = at.slice(-1); seen.tasks = []; seen.draws = 0;
  return f;
})()`, &f))
	return f
}

// heapMB returns the megabytes of the page's JavaScript heap after a collection.
func (s *stage) heapMB() (mb float64) {
	s.t.Helper()
	s.do("heap", chromedp.Evaluate(`gc()`, nil), chromedp.ActionFunc(func(ctx context.Context) error {
		metrics, err := performance.GetMetrics().Do(ctx)
		for _, m := range metrics {
			if m.Name == "JSHeapUsedSize" {
				mb = m.Value / 1e6
			}
		}
		return err
	}))
	return mb
}

func (s *stage) number(what, expression string) (n float64) {
	s.t.Helper()
	s.do(what, chromedp.Evaluate(expression, &n, awaitPromise))
	return n
}

// A run of many agents is opened while some of them work: its tree is there soon and shows what they do, also before the
// events until then are read; the page follows each event, and its memory does not grow with them. `make page-bench` measures it with 10,000 agents and 200,000 events.
func TestLargeRunStaysSmooth(t *testing.T) {
	s := newStage(t)
	c := crowd{teams: *pageTeams, workers: 99, watchers: 64, moments: 600}
	began := time.Now()
	run := s.startCrowd(c)
	s.signIn()
	for s.number("agents", `fetch("/api/v1/runs/`+run+`", {headers: {Authorization: "Bearer " + sessionStorage.getItem("troupe.session")}}).then(r => r.json()).then(r => (r.result?.agents ?? []).length + (r.result?.agents_left_out ?? 0))`) < float64(c.agents()) {
		if time.Since(began) > 10*time.Minute {
			t.Fatalf("there are no %d agents", c.agents())
		}
		s.do("wait", chromedp.Sleep(200*time.Millisecond))
	}
	t.Logf("the node had %d agents after %s", c.agents(), time.Since(began).Round(time.Millisecond))
	s.do("events of the page", performance.Enable(), chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument(recordFrames).Do(ctx)
		return err
	}))
	s.do("the tree", chromedp.Navigate("about:blank"), chromedp.Navigate("http://"+s.address+"/#/run/"+run+"/tree"), chromedp.Poll(`seen.first`, nil))
	first := s.number("the first view", `seen.first`)
	s.do("live", chromedp.Poll(`document.querySelector(".status.glancing, .status.live")`, nil))
	live, opened := s.number("time", `performance.now()`), s.takeFrames()
	ctx, cancel := context.WithTimeout(s.ctx, *pageRead)
	defer cancel()
	if err := chromedp.Run(ctx, chromedp.Poll(`document.querySelector(".status.live")`, nil, chromedp.WithPollingTimeout(0))); err != nil {
		var status string
		s.do("status", chromedp.Text(".status", &status))
		t.Errorf("after %s the page has not read all events: %s", *pageRead, status)
	}
	read, reading := s.number("time", `performance.now()`), s.takeFrames()
	s.do("the agents that work", chromedp.Focus(".rows"), press(kb.End), s.sees("watcher-"))
	heap := s.heapMB()
	s.takeFrames()
	for began := time.Now(); time.Since(began) < *pageWatch; {
		s.do("events arrive", chromedp.Sleep(min(*pageWatch, time.Second)))
	}
	watched := s.takeFrames()
	after := s.heapMB()
	t.Logf("%d agents, %d events", c.agents(), len(strings.Split(s.cli("events", run, "-o", "jsonl"), "\n")))
	t.Logf("first view: %.0f ms; live after %.0f ms; all events read after %.0f ms", first, live, read)
	t.Logf("until it is live: %s", opened)
	t.Logf("while it reads the events: %s", reading)
	t.Logf("while events arrive: %s", watched)
	t.Logf("memory: %.1f MB, after %s %.1f MB", heap, *pageWatch, after)
	// The limits are far above what a free machine needs: the tests run in parallel.
	if first > 15_000 || live > 20_000 || watched.Draws == 0 || after > 100 || watched.Longest > 2000 {
		t.Error("the page is not smooth: see the figures")
	}
}
