//go:build browser

package browser

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// The messages of a tree are a chart with a lane for each agent and a list; Enter shows a message with the line that watches such
// messages. Hostile texts are texts.
func TestMessagesAreChartAndList(t *testing.T) {
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
  boss: [{calls: [{name: delegate, args: {agent: keeper, task: ` + quote(hostile) + `}}]}, {calls: [{name: delegate, args: {agent: keeper, task: "again"}}]}, {text: "done"}]
  keeper: [{text: "kept it"}]
`)
	s.signIn()
	run := s.start(model, "lead", "--agents", s.work, "--agent", "boss")
	s.do("the chart and the list", chromedp.Navigate("http://"+s.address+"/#/run/"+run+"/messages"), chromedp.WaitVisible(".sequence canvas"), s.sees("delegate"), s.sees("kept it"), s.sees("<script>window.hacked=1"))
	s.do("the list has the names of the chart, with the id where two share one", s.sees("boss → keeper root-1-0"), s.sees("keeper root-2-0 → boss"))
	s.do("the answer", press(kb.End), press(kb.Enter), s.sees("keeper (root-2-0) → boss (root)"), s.sees("nats --context troupe sub 'troupe.evt."+run+".root.delegation.finished'"))
	s.checkView("messages-open")
	var hacked bool
	s.do("it is closed", press(kb.Escape), chromedp.WaitNotPresent(".entry"), chromedp.Evaluate(`"hacked" in window || !!document.querySelector("main img, main script")`, &hacked))
	if hacked {
		t.Error("a text of a model became markup")
	}
}
