//go:build browser

package browser

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// A link signs nobody in as somebody else without asking, tabs pass a session on to tabs of its owner only, and an address sends no
// request outside of the API.
func TestLinkDoesNotReplaceASessionOfAnotherOwner(t *testing.T) {
	s := newStage(t)
	s.signIn()
	as := func(name string) chromedp.Action {
		return chromedp.Tasks{chromedp.Evaluate(`sessionStorage.setItem("troupe.owner", `+quote(name)+`)`, nil), chromedp.Reload(), s.sees("as " + name)}
	}
	follow := func() chromedp.Action {
		_, ticket, _ := strings.Cut(s.cli("ui"), "#")
		return chromedp.Tasks{chromedp.Evaluate("location.hash="+quote(ticket), nil), chromedp.WaitVisible(".signin .danger")}
	}
	s.do("the page says as whom it works", as("bob"))
	s.do("a link of an operator asks", follow())
	s.checkWithAxe("sign-in-as-another")
	s.do("the person stays", chromedp.Click("button.primary"), s.sees("as bob"), chromedp.WaitVisible("#find"))
	second := s.newTab("second")
	second.do("a fresh tab gets the session", chromedp.Navigate("http://"+s.address+"/#/runs"), second.sees("as bob"))
	second.do("one of another owner does not", chromedp.Evaluate(`sessionStorage.setItem("troupe.owner", "eve"); sessionStorage.removeItem("troupe.session")`, nil), chromedp.Reload(), chromedp.WaitVisible("input[name=token]"))
	s.do("a link that is used up signs nobody out", chromedp.Navigate("about:blank"), chromedp.Navigate("http://"+s.address+"/#ticket=used"), chromedp.WaitVisible("#find"), s.sees("as bob"))
	s.do("the person goes on as the other", follow(), chromedp.Click("button.danger"), chromedp.WaitVisible("#find"), s.lacks("as bob"))
	second.do("the tab of another owner still does not take it", chromedp.Sleep(300*time.Millisecond), chromedp.WaitVisible("input[name=token]"))
	var sent []string
	s.do("an address that leaves the API", chromedp.Evaluate(`location.hash = "#/run/..\\..\\..\\v1\\models"`, nil), s.sees("There is no such run"), chromedp.Evaluate(`performance.getEntriesByType("resource").map(e => new URL(e.name).pathname).filter(p => !p.startsWith("/api/v1/") && !p.startsWith("/ui/"))`, &sent))
	if len(sent) != 0 {
		t.Errorf("the page asked for %q", sent)
	}
}
