//go:build browser

package browser

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Each form and dialog is as accessible as the view behind it: axe-core looks at it while it is open.
func TestOpenFormsAreAccessible(t *testing.T) {
	s := newStage(t)
	s.do("the sign-in", chromedp.Navigate("http://"+s.address+"/"), chromedp.WaitVisible("input[name=token]"))
	s.checkWithAxe("sign-in")
	s.do("a wrong token", chromedp.SendKeys("input[name=token]", "wrong"+kb.Enter), s.sees("not the token of this node"))
	s.checkWithAxe("sign-in-refused")
	s.do("away", chromedp.Navigate("about:blank")) // a ticket in the same document loads it again
	s.signIn()
	run := s.start(s.script("agents:\n  assistant:\n    - calls: [{name: write_file, args: {path: out.txt, content: \"one\\n\"}}]\n    - calls: [{name: ask_human, args: {question: \"Which colour?\"}}]\n    - text: late\n      delay: 300s\n"), "paint")
	look := func(name string, open ...chromedp.Action) {
		t.Helper()
		s.do(name, append(open, chromedp.WaitVisible("dialog h2"))...)
		s.checkWithAxe(name)
		s.do(name+" is closed", press(kb.Escape), chromedp.WaitNotPresent("dialog"))
	}
	look("form-start", press("n"), s.sees("Investigates a directory"))
	s.do("a lone node is not drained, and the page says why", press("gc"), chromedp.WaitReady("tr.current"), s.sees("alone"), press("d"), s.sees("is not drained"), press("gr"), chromedp.WaitVisible("#find"))
	s.do("the keys, also in a narrow window", press("?"), chromedp.WaitVisible(".keys"), chromedp.EmulateViewport(400, 800), chromedp.WaitVisible(".keys kbd"), chromedp.EmulateViewport(1280, 800))
	s.checkWithAxe("keys")
	s.do("the run", press("?"), chromedp.Navigate("http://"+s.address+"/#/run/"+run+"/questions"), s.sees("out.txt"))
	look("form-name", press("N"))
	look("form-approve", decide("y"), s.sees("+++ out.txt"))
	look("form-deny", decide("n"))
	look("form-cancel", press("x"))
	look("form-steer", press("s"))
	look("form-compare", press("v"))
	look("form-budget", press("b"), chromedp.WaitVisible("dialog input[name=tokens]"))
	look("form-budget-refused", press("b"), chromedp.WaitVisible("dialog input[name=tokens]"), chromedp.SendKeys("dialog input[name=tokens]", kb.Enter), s.sees("nothing would change"))
	look("form-budget-change", press("b"), chromedp.WaitVisible("dialog input[name=tokens]"), chromedp.SendKeys("dialog input[name=tokens]", "300000"+kb.Enter), s.sees("→ 300k"))
	look("form-freeze", press("b"), chromedp.WaitVisible("dialog select"), chromedp.SetValue("dialog select", "freeze: only closing turns"), chromedp.SendKeys("dialog input[name=tokens]", kb.Enter), s.sees("at work → freeze"))
	s.do("approved", decide("y"), chromedp.WaitVisible("dialog input[name=by]"), typeName("Ann"), s.sees("Which colour?"))
	look("form-answer", press("j"), decide("w"))
	look("form-fork", chromedp.Evaluate(`location.hash = `+quote("#/run/"+run+"/transcript"), nil), s.sees("fork after turn 1"), press("f"), chromedp.WaitVisible("dialog input[name=dir]"))
	s.cli("cancel", run, "--now")
}
