//go:build browser

package browser

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// The chart says what is held now: an agent that waits for a person has returned its allowance, of which no event tells, and a run that
// has ended holds nothing.
func TestBudgetChartDropsWhatIsReturned(t *testing.T) {
	s := newStage(t)
	s.signIn()
	run := s.start(s.script("agents:\n  assistant:\n    - calls: [{name: glob, args: {pattern: \"*\"}}]\n    - calls: [{name: glob, args: {pattern: \"*.md\"}}]\n    - calls: [{name: ask_human, args: {question: \"Which colour?\"}}]\n    - text: done\n"), "paint")
	s.do("the question", chromedp.Navigate("http://"+s.address+"/#/run/"+run+"/questions"), s.sees("Which colour?"))
	caption := `document.querySelector("figcaption").innerText`
	s.do("nothing is held", press("5"), chromedp.Poll(caption+`.match(/spent, 0 held$/)`, nil))
	var newest float64
	s.do("the newest event says otherwise", press("8"), s.sees("budget."), chromedp.Evaluate(`[...document.querySelectorAll("#events li pre")].map(p => JSON.parse(p.textContent)).find(e => e.kind.startsWith("budget.")).data.reserved`, &newest))
	if newest == 0 {
		t.Error("the newest event says that nothing is held: this test shows nothing")
	}
	s.cli("cancel", run, "--now")
	s.do("nothing is held at the end", press("5"), chromedp.Poll(`document.querySelector(".status.ended")`, nil), chromedp.Poll(caption+`.match(/spent, 0 held$/)`, nil))
}

// A person sees what models and agents have spent, limits a part of the tree, freezes it and unfreezes it by the keyboard. Each change
// is shown, old → new, before it is sent.
func TestPartsOfATreeAreLimitedByKeyboard(t *testing.T) {
	s := newStage(t)
	for name, text := range map[string]string{
		"boss.md":   "---\nname: boss\ndescription: Leads.\nx-troupe: {delegates: [keeper]}\n---\nLead.\n",
		"keeper.md": "---\nname: keeper\ndescription: Keeps.\n---\nKeep.\n",
	} {
		if err := os.WriteFile(filepath.Join(s.work, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	model := s.script(`
agents:
  boss: [{calls: [{name: delegate, args: {agent: keeper, task: "keep"}}]}, {text: "done"}]
  keeper:
    - calls: [{name: glob, args: {pattern: "*.md"}}]
    - text: "kept"
      delay: 300s
`)
	s.signIn()
	run := s.start(model, "lead", "--agents", s.work, "--agent", "boss")
	s.do("the tree says what the boss waits for", chromedp.Navigate("http://"+s.address+"/#/run/"+run+"/tree"), s.sees("waits for 1 child"))
	button := `button[aria-label^="Limit or freeze keeper"]`
	s.do("the budget", chromedp.Navigate("http://"+s.address+"/#/run/"+run+"/budget"), s.sees("By model"), s.sees("script/"), s.sees("Tokens by agent over time"), chromedp.WaitVisible(button))
	s.do("a limit that changes nothing is refused", chromedp.Focus(button), press(kb.Enter), chromedp.WaitVisible("dialog input[name=tokens]"), chromedp.SendKeys("dialog input[name=tokens]", kb.Enter), s.sees("nothing would change"))
	s.do("what changes is shown first", chromedp.SendKeys("dialog input[name=tokens]", "50k"), chromedp.SendKeys("dialog input[name=calls]", "9"+kb.Enter), s.sees("Tokens: no limit → 50k"), s.sees("Tool calls: no limit → 9"))
	s.checkView("budget-change")
	s.do("nothing is sent before", press(kb.Escape), chromedp.WaitNotPresent("dialog"), s.lacks("of 50k tokens"))
	s.do("limit", chromedp.Focus(button), press(kb.Enter), chromedp.WaitVisible("dialog input[name=tokens]"), chromedp.SendKeys("dialog input[name=tokens]", "50000"), chromedp.SendKeys("dialog input[name=calls]", "9"+kb.Enter), s.sees("→ 50k"), press(kb.Enter), chromedp.WaitNotPresent("dialog"), s.sees("of 50k tokens"), s.sees("of 9 calls"))
	s.do("freeze", chromedp.Focus(button), press(kb.Enter), chromedp.WaitVisible("dialog select"), chromedp.SetValue("dialog select", "freeze: they wait at their next turn"), chromedp.SendKeys("dialog input[name=tokens]", kb.Enter), s.sees("at work → freeze"), press(kb.Enter), chromedp.WaitNotPresent("dialog"), s.sees("calls, frozen"))
	s.do("unfreeze", chromedp.Focus(button), press(kb.Enter), chromedp.WaitVisible("dialog select"), chromedp.SetValue("dialog select", "unfreeze"), chromedp.SendKeys("dialog input[name=tokens]", kb.Enter), s.sees("frozen → at work"), press(kb.Enter), chromedp.WaitNotPresent("dialog"), s.lacks("calls, frozen"))
	s.checkView("budget")
}
