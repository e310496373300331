//go:build browser

package browser

import (
	"os"
	"path/filepath"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// checkView looks at what the page shows now with axe-core, and keeps pictures of it at three sizes, light and dark.
func (s *stage) checkView(name string) {
	s.t.Helper()
	axe, err := os.ReadFile("node_modules/axe-core/axe.min.js")
	if err != nil {
		s.t.Fatalf("make browser installs it: %v", err)
	}
	dir := filepath.Join(os.TempDir(), "troupe-page")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		s.t.Fatal(err)
	}
	s.do("load axe-core", chromedp.Evaluate(string(axe), nil))
	for _, scheme := range []string{"light", "dark"} {
		for _, size := range [][2]int64{{400, 800}, {1280, 800}, {3840, 2160}} {
			width := size[0]
			var found []string
			var shot []byte
			var wide bool
			s.do("view "+name, emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}), chromedp.EmulateViewport(width, size[1]), chromedp.Sleep(250*time.Millisecond),
				chromedp.Evaluate(`document.documentElement.scrollWidth > innerWidth`, &wide), chromedp.CaptureScreenshot(&shot),
				chromedp.Evaluate(`axe.run(document, {resultTypes: ["violations"]}).then(r => r.violations.filter(v => v.impact === "serious" || v.impact === "critical").map(v => v.id + ": " + v.nodes.slice(0, 3).map(n => n.html + " " + (n.any[0]?.message ?? "")).join(" | ")))`, &found,
					func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
			if wide {
				s.t.Errorf("%s is wider than %d", name, width)
			}
			for _, f := range found {
				s.t.Errorf("%s, %s at %d: %s", name, scheme, width, f)
			}
			path := filepath.Join(dir, name+"-"+jsonNumber(int(width))+"-"+scheme+".png")
			if err := os.WriteFile(path, shot, 0o644); err != nil {
				s.t.Fatal(err)
			}
		}
	}
}
