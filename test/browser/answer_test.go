//go:build browser

package browser

import (
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Two people answer one question at once, each in a tab with a name: the first answer counts, and both tabs show whose it
// was, what and when. So does an answer with a text.
func TestTwoTabsShowWhoAnsweredFirst(t *testing.T) {
	s := newStage(t)
	model := s.script(`
agents:
  assistant:
    - calls: [{name: write_file, args: {path: out.txt, content: "one\n"}}]
    - calls: [{name: ask_human, args: {question: "Which colour?"}}]
    - text: "done"
`)
	s.signIn()
	other := s.newTab("second")
	run := s.start(model, "paint")
	for name, tab := range map[string]*stage{"Ann": s, "Bob": other} {
		tab.do(name+" gives a name by the keyboard", chromedp.Navigate("http://"+s.address+"/#/inbox"), tab.sees("out.txt"), press("N"), chromedp.WaitVisible("dialog input[name=by]"),
			typeName(name), chromedp.WaitNotPresent("dialog"), tab.sees("You answer as "+name+"."))
	}
	s.do("whose question it is, with links to run and agent", chromedp.Poll(`document.querySelector(".card p").innerText.startsWith("paint · assistant root · ")`, nil), chromedp.WaitVisible(`.card a[href="#/run/`+run+`"]`), chromedp.WaitVisible(`.card a[href="#/run/`+run+`/transcript/root"]`))
	s.checkView("question")
	other.do("Bob's reason", press("n"), chromedp.WaitVisible("dialog textarea"), chromedp.SendKeys("dialog textarea", "not there"), press(kb.Tab))
	var both sync.WaitGroup
	for tab, key := range map[*stage]string{s: "y", other: kb.Enter} {
		both.Go(func() { tab.do("answer at once", press(key)) })
	}
	both.Wait()
	first := make([]string, 2)
	form := regexp.MustCompile(`^First answer: (approved, by Ann at [\d:]+( [AP]M)?|denied, by Bob at [\d:]+( [AP]M)?: not there)$`)
	for i, tab := range []*stage{s, other} {
		tab.do("who was first", chromedp.Poll(`document.querySelector(".card.closed strong")`, nil), chromedp.Text(".card.closed p:nth-child(2)", &first[i]))
		if !form.MatchString(first[i]) {
			t.Errorf("the card of tab %d says %q", i+1, first[i])
		}
	}
	if first[0] != first[1] {
		t.Errorf("the tabs disagree: %q and %q", first[0], first[1])
	}
	loser := other
	if strings.Contains(first[0], "by Bob") {
		loser = s
	}
	loser.do("the second answer is refused", loser.sees("answered already"))
	s.checkView("answered")
	other.do("the form is closed", press(kb.Escape), chromedp.WaitNotPresent("dialog"))
	s.do("Ann answers with a text", s.sees("Which colour?"), press("w"), chromedp.WaitVisible("dialog textarea"), chromedp.SendKeys("dialog textarea", "green"), press(kb.Tab), press(kb.Enter), chromedp.WaitNotPresent("dialog"))
	for _, tab := range []*stage{s, other} {
		tab.do("the text of the answer", tab.sees("First answer: a text, by Ann"), tab.sees("green"))
	}
	s.cli("result", "--wait", run)
}

// An answer that cannot be read is no missing answer, and a read that takes longer than the questions stay the same counts.
func TestAnswerThatCannotBeReadIsReadAgain(t *testing.T) {
	s := newStage(t)
	model := s.script("agents:\n  assistant:\n    - calls: [{name: write_file, args: {path: out.txt, content: x}}]\n    - text: done\n      delay: 300s\n")
	s.signIn()
	run := s.start(model, "paint")
	s.do("polls in 50 ms, and reads of answers that fail and then take 400 ms", chromedp.Evaluate(`{
		const later = setTimeout, real = fetch;
		window.setTimeout = (f, ms, ...more) => later(f, ms === 2000 ? 50 : ms, ...more);
		window.failing = true;
		window.failed = 0;
		window.fetch = (path, more) => !String(path).includes("query.answered") ? real(path, more)
			: failing ? (failed++, Promise.reject(new TypeError("down"))) : new Promise((done) => later(done, 400)).then(() => real(path, more));
	}`, nil))
	s.do("approve", chromedp.Evaluate(`location.hash = "#/inbox"`, nil), s.sees("out.txt"), press("y"), chromedp.WaitVisible("dialog input[name=by]"), typeName("Ann"))
	s.do("many reads fail", chromedp.Poll(`failed > 15`, nil), s.sees("could not be read"), s.lacks("without an answer"))
	s.do("a slow one counts", chromedp.Evaluate(`failing = false`, nil), s.sees("First answer: approved, by Ann"), s.lacks("could not be read"))
	s.cli("cancel", run, "--now")
}
