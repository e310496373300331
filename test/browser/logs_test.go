//go:build browser

package browser

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// A person reads the recorded entries by the keyboard: of an agent and of the supervisor, page by page, with their bytes. Hostile
// bytes are a text.
//
//behaviour:shows I4
func TestLogEntriesAreReadByKeyboard(t *testing.T) {
	s := newStage(t)
	script := "default:\n"
	for i := range 60 {
		script += fmt.Sprintf("  - calls: [{name: glob, args: {pattern: \"*.a%[1]d\"}}, {name: glob, args: {pattern: \"*.b%[1]d\"}}, {name: glob, args: {pattern: \"*.c%[1]d\"}}]\n", i)
	}
	model := s.script(script + "  - text: " + quote(hostile) + "\n")
	s.signIn()
	run := s.start(model, "look "+hostile, "--max-turns", "100", "--max-tool-calls", "1000")
	s.do("the run ends", chromedp.Navigate("http://"+s.address+"/#/run/"+run), chromedp.Poll(`document.querySelector(".status.ended")`, nil))
	s.do("the entries of the root", press("9"), s.sees("Log entries"), s.sees("submitted"))
	s.do("the first entry is opened with Enter", press(kb.Home), press(kb.Enter), s.sees("Bytes"), s.sees("look <img src=x"), s.sees(`\u202e`), s.sees("000000  "))
	var hacked bool
	s.do("no script of a model ran", chromedp.Evaluate(`"hacked" in window || !!document.querySelector("main img, main script")`, &hacked))
	if hacked {
		t.Error("bytes of an entry became markup")
	}
	s.checkView("logs")
	s.do("it is closed", press(kb.Escape), chromedp.WaitNotPresent(".entry"))
	s.do("the page after", press("]"), chromedp.Poll(`/entries, (\d+) to/.exec(document.body.innerText)?.[1] > 200`, nil))
	s.do("the page before", press("["), s.sees("200 entries, "))
	s.do("the log of the supervisor", chromedp.Evaluate(`location.hash += "/super"`, nil), s.sees(run+".super"), s.sees("resumed"))
	s.do("the transcript is the root's", press("2"), s.sees("<script>window.hacked=1</script>"))
}
