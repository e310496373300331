//go:build browser

package browser

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// The page of a run whose conversation was handed off says in the tree, in both transcripts and among the messages which agent
// took over, from which, and when; so does the file.
func TestHandoffsAreShown(t *testing.T) {
	s := newStage(t)
	team := s.work // below the root of the node
	for name, text := range map[string]string{
		"triage.md":  "---\nname: triage\ndescription: Finds out who can help.\nx-troupe: {handoffs: [billing], delegates: []}\n---\nYou find out who can help.\n",
		"billing.md": "---\nname: billing\ndescription: Refunds orders.\nx-troupe: {delegates: []}\n---\nYou refund orders.\n",
	} {
		if err := os.WriteFile(filepath.Join(team, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	model := s.script(`
agents:
  triage: [{text: "Billing takes over.", calls: [{name: handoff, args: {agent: billing, message: "Refund order 7."}}]}]
  billing: [{text: "unheard"}, {text: "refunded."}]
`)
	run := s.start(model, "My order 7 is broken.", "--agents", team, "--agent", "triage")
	s.cli("result", "--wait", run)
	s.signIn()
	look := func(where string) {
		s.do(where+": the tree", s.sees("2 agents · 1 handoff"), s.sees("billing (root-1-0) took over at "), s.sees("took over from triage (root) at "))
		s.do(where+": who gave it", press("2"), s.sees("Billing takes over."), s.sees("billing (root-1-0) took over at "))
		s.do(where+": the messages", press("7"), s.sees("handoff"), s.sees("triage → billing"))
	}
	s.do("the run", chromedp.Navigate("http://"+s.address+"/#/run/"+run+"/tree"))
	look("the page")
	s.do("who took it", chromedp.Navigate("http://"+s.address+"/#/run/"+run+"/transcript/root-1-0"), s.sees("took over from triage (root) at "), s.sees("refunded."))
	path := filepath.Join(t.TempDir(), "run.html")
	if err := os.WriteFile(path, []byte(s.cli("export", run, "--html")), 0o600); err != nil {
		t.Fatal(err)
	}
	s.do("the file", chromedp.Navigate("file://"+path), s.sees("a file"))
	look("the file")
}
