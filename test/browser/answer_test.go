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
	s.do("the title of the tab counts it", chromedp.Poll(`document.title === "(1) troupe"`, nil))
	s.checkView("question")
	s.do("it stands", chromedp.WaitReady("ol.cards.settled"))
	other.do("Bob's reason", decide("n"), chromedp.WaitVisible("dialog textarea"), chromedp.SendKeys("dialog textarea", "not there"), press(kb.Tab))
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
	s.do("Ann answers with a text", s.sees("Which colour?"), press("j"), decide("w"), chromedp.WaitVisible("dialog textarea"), chromedp.SendKeys("dialog textarea", "green"), press(kb.Tab), press(kb.Enter), chromedp.WaitNotPresent("dialog"))
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
	s.do("approve", chromedp.Evaluate(`location.hash = "#/inbox"`, nil), s.sees("out.txt"), decide("y"), chromedp.WaitVisible("dialog input[name=by]"), typeName("Ann"))
	s.do("many reads fail", chromedp.Poll(`failed > 15`, nil), s.sees("could not be read"), s.lacks("without an answer"))
	s.do("a slow one counts", chromedp.Evaluate(`failing = false`, nil), s.sees("First answer: approved, by Ann"), s.lacks("could not be read"))
	s.cli("cancel", run, "--now")
}

// pressAtOnce presses y in the moment in which the number of cards changes, before anybody can have read them.
const pressAtOnce = `new Promise((done) => {
	const cards = () => document.querySelectorAll("main > ol.cards > .card").length, before = cards();
	const seen = new MutationObserver(() => { if (cards() === before) return; seen.disconnect(); requestAnimationFrame(() => { document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "y", bubbles: true, cancelable: true})); document.querySelector("main > ol.cards > .card:last-child .primary").click(); done(true); }); });
	seen.observe(document.body, {childList: true, subtree: true});
})`

// The list of questions is read again and again: what was chosen stays chosen wherever it moves, nothing is chosen in its place,
// and neither a key nor a click decides a question that has just come or moved.
func TestChosenQuestionIsDecidedAndNoOther(t *testing.T) {
	s := newStage(t)
	model := s.script("agents:\n  assistant:\n    - calls: [{name: write_file, args: {path: out.txt, content: x}}]\n    - text: done\n      delay: 300s\n")
	s.signIn()
	first := s.start(model, "one")
	s.do("a name", chromedp.Evaluate(`location.hash = "#/inbox"`, nil), s.sees("one"), decide("N"), chromedp.WaitVisible("dialog input[name=by]"), typeName("Ann"), chromedp.WaitNotPresent("dialog"))
	current := `(document.querySelector(".card.current a")?.innerText ?? "")`
	is := func(title string) chromedp.Action { return chromedp.Poll(current+` === `+quote(title), nil) }
	late := make(chan string, 1)
	go func() { late <- s.start(model, "two") }()
	s.do("a key and a click at once decide nothing", is("one"), chromedp.Evaluate(pressAtOnce, nil, awaitPromise), s.sees("have just changed"))
	second := <-late
	s.do("the second is chosen", decide("j"), is("two"))
	s.cli("cancel", first, "--now")
	s.do("it stays chosen", chromedp.Poll(`document.querySelectorAll("main > ol.cards > .card").length === 1`, nil), is("two"))
	third := s.start(model, "three")
	s.do("a third", s.sees("three"), is("two"))
	s.cli("cancel", second, "--now")
	s.do("the chosen one is gone, and y decides no other", is(""), decide("y"), s.sees("No question is chosen"), s.lacks("recorded for"))
	s.do("j chooses the next", press("j"), is("three"), decide("a"), s.sees("approve: recorded for assistant of three, by Ann"), s.sees("First answer: approved for this run, by Ann"))
	s.cli("cancel", third, "--now")
}
