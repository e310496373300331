//go:build browser

package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// The transcript has a placeholder where a message was retracted and where a compaction replaces messages; it opens by the keyboard.
// The file of the run has them too.
func TestHiddenPartsAreMarkedWhereTheyAre(t *testing.T) {
	s := newStage(t)
	script := "in_order: true\nagents:\n  assistant:\n    - text: \"\"\n"
	for i := range 8 {
		script += fmt.Sprintf("    - {calls: [{name: glob, args: {pattern: \"*.a%d\"}}], usage: {input_tokens: 600, output_tokens: 10}}\n", i)
	}
	model := s.script(script + "    - {error: {class: prompt_too_long, status: 400, unbilled: true}}\n    - text: done\ndefault: [{text: the summary of what was found}]\n")
	run := s.start(model, "look around")
	s.cli("result", "--wait", run)
	s.signIn()
	look := func(where string) {
		s.do(where+": what is hidden", s.sees("1 compaction, 1 retracted message"), s.sees("Retracted message of the assistant, turn 1"), s.sees("Compaction in turn "))
		var order bool
		s.do(where+": at their places", chromedp.Evaluate(`(() => { const all = [...document.querySelector(".transcript").querySelectorAll(".said, .hidden-part")], r = all.findIndex(e => e.matches(".retracted")), c = all.findIndex(e => e.matches(".compaction"));
			return r > 0 && c > r + 1 && c < all.length - 1 && all.every((e, i) => i === r || !e.textContent.includes("Nothing of it was kept")); })()`, &order))
		if !order {
			t.Errorf("%s: the placeholders are not between the messages", where)
		}
		s.do(where+": the summary is opened", s.lacks("the summary of what was found"), chromedp.Focus(".compaction summary"), press(kb.Enter), s.sees("the summary of what was found"))
	}
	s.do("the transcript", chromedp.Navigate("http://"+s.address+"/#/run/"+run+"/transcript"))
	look("the page")
	s.checkView("hidden-parts")
	path := filepath.Join(t.TempDir(), "run.html")
	if err := os.WriteFile(path, []byte(s.cli("export", run, "--html")), 0o600); err != nil {
		t.Fatal(err)
	}
	s.do("the file", chromedp.Navigate("file://"+path), s.sees("a file"), press("2"))
	look("the file")
}
