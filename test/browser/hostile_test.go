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

// A tool's result of one line of 5 MB, with markup and control characters, is a text on the page, and the page stays usable.
func TestHostileToolResultIsAText(t *testing.T) {
	s := newStage(t)
	for name, text := range map[string]string{
		"line.txt":  hostile + strings.Repeat("<b onclick=alert(1)>long</b>", 5_000_000/28) + hostile + "\n",
		"reader.md": "---\nname: reader\ndescription: Reads.\nx-troupe:\n  delegates: []\n  tools: [{name: look, description: Reads the line., command: \"cat line.txt\", effect: read}]\n---\nYou read.\n",
	} {
		if err := os.WriteFile(filepath.Join(s.work, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	model := s.script("agents:\n  reader: [{calls: [{name: look, args: {}}]}, {text: \"it says {{last}}\"}]\n")
	run := s.start(model, "read", "--agents", s.work, "--agent", "reader", "--yes")
	s.cli("result", "--wait", run)
	s.signIn()
	look := func(where string) {
		s.do(where, press("2"), s.sees("<script>window.hacked=1</script>"), s.sees(`\u202egnp.exe \x1b[31mred`))
		began := time.Now()
		s.do(where+": the call unfolds", press("e"), chromedp.Poll(`document.querySelector("details.call[open]")`, nil), press("3"), s.sees("Last decisions"))
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s: two keys took %s", where, took)
		}
		var hacked bool
		s.do("no markup", chromedp.Evaluate(`"hacked" in window || !!document.querySelector("main img, main script, main b[onclick]")`, &hacked))
		if hacked {
			t.Errorf("%s: a text of a tool became markup", where)
		}
	}
	s.do("the run", chromedp.Navigate("http://"+s.address+"/#/run/"+run+"/transcript"))
	look("the page")
	s.do("the entries", press("9"), s.sees("Log entries"), chromedp.Focus(".rows"), press(kb.Home), press(kb.Enter), s.sees("Bytes"))
	path := filepath.Join(t.TempDir(), "run.html")
	if err := os.WriteFile(path, []byte(s.cli("export", run, "--html")), 0o600); err != nil {
		t.Fatal(err)
	}
	s.do("the file", chromedp.Navigate("file://"+path), s.sees("a file"))
	look("the file")
}
