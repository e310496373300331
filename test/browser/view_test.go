//go:build browser

package browser

import (
	"os"
	"path/filepath"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// checkWithAxe looks at what the page shows now with axe-core, light and dark. A finding of any weight fails the test.
func (s *stage) checkWithAxe(name string) {
	s.t.Helper()
	axe, err := os.ReadFile("node_modules/axe-core/axe.min.js")
	if err != nil {
		s.t.Fatalf("make browser installs it: %v", err)
	}
	for _, scheme := range []string{"light", "dark"} {
		var found []string
		s.do("axe "+name, emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}), chromedp.Evaluate(string(axe), nil),
			chromedp.Evaluate(`axe.run(document, {resultTypes: ["violations"]}).then(r => r.violations.map(v => v.id + " (" + v.impact + "): " + v.nodes.slice(0, 3).map(n => n.html + " " + (n.any[0]?.message ?? n.all[0]?.message ?? n.none[0]?.message ?? "")).join(" | ")))`, &found, awaitPromise))
		for _, f := range found {
			s.t.Errorf("%s, %s: %s", name, scheme, f)
		}
	}
}

// checkView looks at what the page shows now with axe-core, and keeps pictures of it at three sizes, light and dark.
func (s *stage) checkView(name string) {
	s.t.Helper()
	dir := filepath.Join(os.TempDir(), "troupe-page")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		s.t.Fatal(err)
	}
	for _, size := range [][2]int64{{400, 800}, {1280, 800}, {3840, 2160}} {
		width := size[0]
		s.do("size of view "+name, chromedp.EmulateViewport(width, size[1]))
		for _, scheme := range []string{"light", "dark"} {
			var shot []byte
			var wide bool
			s.do("view "+name, emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}), chromedp.Sleep(250*time.Millisecond),
				chromedp.Evaluate(`document.documentElement.scrollWidth > innerWidth`, &wide), chromedp.CaptureScreenshot(&shot))
			if wide {
				s.t.Errorf("%s is wider than %d", name, width)
			}
			path := filepath.Join(dir, name+"-"+jsonNumber(int(width))+"-"+scheme+".png")
			if err := os.WriteFile(path, shot, 0o644); err != nil {
				s.t.Fatal(err)
			}
		}
		s.checkWithAxe(name + "-" + jsonNumber(int(width)))
	}
}
