//go:build browser

package browser

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// slowRun is a script whose run stays live until it is canceled.
const slowRun = "agents:\n  assistant:\n    - text: \"late\"\n      delay: 300s\n"

// A page whose session the node takes no more shows the sign-in, and goes on at its address, also by the ticket of
// `troupe ui`. A run that is gone is said to be gone, and is not asked for again.
func TestEndedSessionIsSignedInAgain(t *testing.T) {
	s := newStage(t)
	s.signIn()
	run := s.start(s.script(slowRun), "wait")
	hash := "#/run/" + run + "/events"
	s.do("the run is live", chromedp.Navigate("http://"+s.address+"/"+hash), chromedp.Poll(`document.querySelector(".status.live")`, nil))
	second := s.newTab("second")
	second.do("a tab that gets the session of the first", chromedp.Navigate("http://"+s.address+"/#/inbox"), second.sees("No open questions."))
	second.do("a tab whose session is refused gets that of the first", chromedp.Evaluate(`sessionStorage.setItem("troupe.session", "of-another-day")`, nil), chromedp.Reload(), second.sees("No open questions."), second.lacks("The session has ended"))
	replace := func(token string) {
		s.stopNode()
		if err := os.WriteFile(filepath.Join(s.state, "http.token"), []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		s.startNode()
	}
	replace("a-token-of-another-day")
	for _, tab := range []*stage{s, second} {
		tab.do("the sign-in", tab.sees("The session has ended"), chromedp.WaitVisible("input[name=token]"))
	}
	s.do("a wrong token", chromedp.SendKeys("input[name=token]", "a-token-of-yesterday"+kb.Enter), s.sees("not the token of this node"))
	s.do("the token", chromedp.Evaluate(`document.querySelector("input[name=token]").value = ""`, nil), chromedp.SendKeys("input[name=token]", "a-token-of-another-day"+kb.Enter), chromedp.Poll(`document.querySelector(".status.live")`, nil))
	second.do("the other tab goes on by itself", second.sees("No open questions."))
	s.isAt(hash)
	second.isAt("#/inbox")

	replace("a-token-of-tomorrow")
	s.do("the sign-in again", s.sees("The session has ended"))
	_, ticket, _ := strings.Cut(s.cli("ui"), "#")
	s.do("a ticket in the same tab", chromedp.Evaluate("location.hash="+quote(ticket), nil), chromedp.WaitReady(".status.live"))
	s.isAt(hash)

	s.cli("cancel", run, "--now")
	s.do("the run ends", chromedp.Poll(`document.querySelector(".status.ended")`, nil))
	s.cli("delete", run, "--yes")
	for name, id := range map[string]string{"deleted": run, "unknown": "01kaaaaaaaaaaaaaaaaaaaaaaa"} {
		var before, after int
		s.do("a run that is "+name, chromedp.Navigate("about:blank"), chromedp.Navigate("http://"+s.address+"/#/run/"+id+"/tree"), chromedp.Poll(`document.querySelector(".status.gone")`, nil), s.sees("the run is gone"), s.lacks("trying again"))
		count := `performance.getEntriesByType("resource").length`
		s.do("is asked for once", chromedp.Poll(count+` >= 3`, nil), chromedp.Evaluate(count, &before), chromedp.Evaluate(`new Promise(r => setTimeout(r, 3000))`, nil, awaitPromise), chromedp.Evaluate(count, &after))
		if before != after {
			t.Errorf("a run that is %s: %d requests, and 3 s later %d", name, before, after)
		}
	}
}
