//go:build browser

package browser

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// A person forks a run after a turn with another message, and compares the fork with its origin, by the keyboard. Hostile texts
// are texts on both sides.
//
//behaviour:shows I4
func TestPersonForksAndCompares(t *testing.T) {
	s := newStage(t)
	origin, fork := filepath.Join(s.work, "origin"), filepath.Join(s.work, "copy")
	for _, dir := range []string{origin, fork} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	script := filepath.Join(s.work, "script.yaml")
	text := "default:\n  - calls: [{name: glob, args: {pattern: \"*.go\"}}]\n  - calls: [{name: glob, args: {pattern: \"*.md\"}}]\n  - text: \"answer: {{last}}\"\n"
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.signIn()
	run := s.start("script/"+script, "look around", "--dir", origin)
	s.do("the run ends", chromedp.Navigate("http://"+s.address+"/#/run/"+run+"/transcript"), chromedp.Poll(`document.querySelector(".status.ended")`, nil), s.sees("fork after turn 1"), s.sees("fork after turn 3"))
	s.do("the form of the newest turn", press("f"), chromedp.WaitVisible("dialog input[name=dir]"), s.sees("Fork after turn 3 of root"), s.sees("troupe run --fork "+run+"@root:3"))
	s.checkView("fork")
	s.do("it is closed", press(kb.Escape), chromedp.WaitNotPresent("dialog"))
	s.do("the form of turn 2", chromedp.Focus(`button[aria-label="Fork after turn 2"]`), press(kb.Enter), chromedp.WaitVisible("dialog input[name=dir]"))
	s.do("a fork in the directory of the run is refused", chromedp.SendKeys("dialog input[name=dir]", origin+kb.Enter), s.sees("both would write there"))
	s.do("fork into the copy", chromedp.Evaluate(`document.querySelector("dialog input[name=dir]").value = ""`, nil), chromedp.SendKeys("dialog input[name=dir]", fork), chromedp.SendKeys("dialog textarea[name=prompt]", "what about "+`<img src=x onerror="window.hacked=1">`), chromedp.SendKeys("dialog input[name=dir]", kb.Enter), chromedp.WaitNotPresent("dialog"))
	s.do("the fork is shown, and ends", chromedp.Poll(`!location.hash.includes(`+quote(run)+`)`, nil), chromedp.Poll(`document.querySelector(".status.ended")`, nil), s.sees("fork of "+run[:10]))
	s.do("compare with the origin, whose id is there", press("v"), chromedp.WaitVisible("dialog input[name=other]"), chromedp.SendKeys("dialog input[name=other]", kb.Enter), s.sees("First difference: root, turn"), s.sees("what about <img"))
	var first string
	var hacked bool
	s.do("the first difference is marked", chromedp.Text(".pair.first h3", &first), chromedp.Evaluate(`"hacked" in window || !!document.querySelector("main img, main script")`, &hacked))
	if first == "" || hacked {
		t.Errorf("first difference %q, hacked %v", first, hacked)
	}
	s.checkView("compare")
	s.do("a run is as it is", chromedp.Evaluate(`location.hash = "#/compare/`+run+`/`+run+`"`, nil), s.sees("No difference"))
}
