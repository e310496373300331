//go:build browser

package browser

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const stepTimeout = time.Minute // eight tabs on two cores that others use, too

// stage is a node and a browser that looks at its page.
type stage struct {
	t            *testing.T
	troupe, node string // binaries
	state, work  string
	env          []string // of node and command
	address      string
	process      *exec.Cmd
	ctx          context.Context
	faults       chan string // what the page reported on its console
}

// binaries are the directory of the programs, which all tests share.
var binaries string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "troupe-browser-")
	if err != nil {
		panic(err)
	}
	binaries = dir
	code := 1
	cmd := exec.Command("go", "build", "-o", dir+"/", "./cmd/cli", "./cmd/node")
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
	} else {
		code = m.Run()
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

func newStage(t *testing.T, env ...string) *stage {
	t.Helper()
	t.Parallel() // a test has its own node and browser
	s := &stage{t: t, env: append(os.Environ(), env...), troupe: filepath.Join(binaries, "cli"), node: filepath.Join(binaries, "node"), state: filepath.Join(t.TempDir(), "state"), work: t.TempDir(), address: "127.0.0.1:0", faults: make(chan string, 100)}
	s.startNode()
	flags := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("js-flags", "--expose-gc"), chromedp.UserDataDir(newProfile(t)))
	if path, err := exec.LookPath("chromium"); err == nil {
		flags = append(flags, chromedp.ExecPath(path))
	}
	allocated, stop := chromedp.NewExecAllocator(context.Background(), flags...)
	ctx, cancel := chromedp.NewContext(allocated, chromedp.WithErrorf(func(string, ...any) {})) // it reports events that it does not know
	s.ctx = ctx
	t.Cleanup(func() { cancel(); stop(); s.stopNode() })
	if err := chromedp.Run(ctx); err != nil { // the browser lives as long as the context of its first use
		t.Fatal(err)
	}
	s.listen(ctx)
	t.Cleanup(s.checkFaults)
	return s
}

// listen collects what a tab reports: exceptions, and what its content security policy has refused.
func (s *stage) listen(ctx context.Context) {
	s.t.Helper()
	chromedp.ListenTarget(ctx, func(e any) {
		fault := ""
		switch e := e.(type) {
		case *runtime.EventExceptionThrown:
			fault = e.ExceptionDetails.Error()
		case *cdplog.EventEntryAdded:
			if e.Entry.Source == cdplog.SourceSecurity || strings.Contains(e.Entry.Text, "Content Security Policy") {
				fault = e.Entry.Text
			}
		}
		if fault == "" {
			return
		}
		select {
		case s.faults <- fault:
		default: // the first ones are enough
		}
	})
	if err := chromedp.Run(ctx, cdplog.Enable()); err != nil {
		s.t.Fatal(err)
	}
}

// checkFaults fails the test for what its tabs have reported.
func (s *stage) checkFaults() {
	s.t.Helper()
	for len(s.faults) > 0 {
		s.t.Errorf("the page reported: %s", <-s.faults)
	}
}

// newProfile makes the browser's directory, beside the binaries: processes of the browser still
// write there when the test is over.
func newProfile(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(binaries, "profile-")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// startNode starts the node, at its earlier address if it had one.
func (s *stage) startNode() {
	s.t.Helper()
	s.process = exec.Command(s.node, "--store-dir", s.state, "--root", s.work, "--http", s.address)
	s.process.Env = s.env
	out, err := s.process.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	var log bytes.Buffer
	s.process.Stderr = &log
	if err := s.process.Start(); err != nil {
		s.t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "ready") {
			go func() { // the pipe must not fill up
				for lines.Scan() {
				}
			}()
			var file struct{ HTTP string }
			raw, err := os.ReadFile(filepath.Join(s.state, "node.json"))
			if err != nil || json.Unmarshal(raw, &file) != nil {
				s.t.Fatalf("node.json: %v %s", err, raw)
			}
			s.address = strings.TrimPrefix(file.HTTP, "http://")
			return
		}
	}
	s.t.Fatalf("the node did not start:\n%s", log.String())
}

func (s *stage) stopNode() {
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
}

// cli runs a command of troupe.
func (s *stage) cli(args ...string) string {
	s.t.Helper()
	cmd := exec.Command(s.troupe, append(args, "--store-dir", s.state)...)
	cmd.Env = s.env
	var wrong bytes.Buffer
	cmd.Stderr = &wrong
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("troupe %v: %v\n%s", args, err, wrong.String())
	}
	return strings.TrimSpace(string(out))
}

func (s *stage) do(what string, actions ...chromedp.Action) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, stepTimeout)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		var body, hash string
		_ = chromedp.Run(s.ctx, chromedp.Text("body", &body), chromedp.Location(&hash))
		s.t.Fatalf("%s: %v\n%s\n%s", what, err, hash, body)
	}
}

// sees waits until the page shows a text.
func (s *stage) sees(text string) chromedp.Action {
	return chromedp.Poll(`document.body.innerText.includes(`+quote(text)+`)`, nil)
}

func (s *stage) lacks(text string) chromedp.Action {
	return chromedp.Poll(`!document.body.innerText.includes(`+quote(text)+`)`, nil)
}

func quote(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// script writes a scripted model into the root and returns its name.
func (s *stage) script(text string) string {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), "script.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return "script/" + path
}

// start starts a run by the command, because only that may name a script.
func (s *stage) start(model, prompt string, more ...string) string {
	s.t.Helper()
	out := s.cli(append([]string{"start", "--dir", s.work, "-m", model, "-o", "json", prompt}, more...)...)
	var r struct {
		RunID string `json:"run_id"`
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.RunID == "" {
		s.t.Fatalf("start: %v %s", err, out)
	}
	return r.RunID
}

func (s *stage) signIn() {
	s.t.Helper()
	s.do("sign in", chromedp.Navigate(s.cli("ui")), s.sees("Runs"), chromedp.WaitVisible("#find"))
}

const hostile = "<img src=x onerror=\"window.hacked=1\"><script>window.hacked=1</script> \u202Egnp.exe \x1b[31mred \u2800\u3164\ufe01\U000E0100\u2764\ufe0f"

// typeName gives a name in the dialog that asks for it, in place of the browser's last one.
func typeName(name string) chromedp.Action {
	return chromedp.Tasks{chromedp.Evaluate(`document.querySelector("dialog input[name=by]").value = ""`, nil), chromedp.SendKeys("dialog input[name=by]", name+kb.Enter)}
}

// press presses a key as a keyboard does: its character comes with the key, and not at all when the page takes the key.
// chromedp.KeyEvent sends the two apart, so that the character may end in the dialog that the key has opened.
func press(key string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		for _, r := range key {
			events := kb.Encode(r)
			for i, e := range events {
				if e.Type == input.KeyChar {
					continue
				}
				if e.Type == input.KeyDown && events[i+1].Type == input.KeyChar {
					e.Text, e.UnmodifiedText = events[i+1].Text, events[i+1].UnmodifiedText
				}
				if err := e.Do(ctx); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// decide presses a key once the questions have stood for a while: before, the page decides none.
func decide(key string) chromedp.Action {
	return chromedp.Tasks{chromedp.WaitReady("ol.cards.settled"), press(key)}
}

// A person does all of it by the keyboard, while the node is killed and comes back.
//
//behaviour:shows E4 I4
func TestPersonWorksByKeyboard(t *testing.T) {
	s := newStage(t)
	model := s.script(`
agents:
  assistant:
    - text: ` + quote(hostile) + `
      calls: [{name: write_file, args: {path: out.txt, content: "one\ntwo\n"}}]
    - calls: [{name: ask_human, args: {question: "Which colour?"}}]
    - text: "the colour is {{last}}"
      delay: 300s
`)
	s.signIn()
	run := s.start(model, "paint "+hostile, "--max-tokens", "200000")
	s.do("the run is listed, and opened with Enter", s.sees("paint <img"), press("/"), press(kb.Escape), chromedp.Poll(`document.activeElement === document.body`, nil), press(kb.Enter), chromedp.WaitVisible("nav.tabs"))
	s.do("the tree and the tabs say that it asks", s.sees("asks: write out.txt"), chromedp.Poll(`document.querySelector(".tabs").innerText.includes("Questions 1 open")`, nil))
	s.do("so does the transcript", press("2"), s.sees("waits for approval"))
	s.do("a question of a call", press("4"), s.sees("out.txt"), s.sees("Once"))
	s.do("approve once, with a name that is asked once", decide("y"), chromedp.WaitVisible("dialog input[name=by]"), typeName("Ann"), s.sees("Which colour?"), s.sees("approved, by Ann"))
	s.do("no question is chosen, until j chooses one", press("w"), s.sees("No question is chosen"), press("j"))
	s.do("answer", decide("w"), chromedp.WaitVisible("dialog textarea"), chromedp.SendKeys("dialog textarea", "green"), press(kb.Tab), press(kb.Enter), s.lacks("Which colour?"))
	if data, err := os.ReadFile(filepath.Join(s.work, "out.txt")); err != nil || string(data) != "one\ntwo\n" {
		t.Errorf("the approved write: %q %v", data, err)
	}

	s.stopNode()
	s.do("the page says that it is behind", s.sees("behind"))
	s.do("what is sent now is not sent", press("s"), chromedp.WaitVisible("dialog textarea"), chromedp.SendKeys("dialog textarea", "hello"), press(kb.Tab), press(kb.Enter), s.sees("may have been done or not"), chromedp.Poll(`!document.querySelector("dialog").innerText.includes("trying again")`, nil), press(kb.Escape), chromedp.WaitNotPresent("dialog"))
	s.startNode()
	s.do("the page is live again", chromedp.Poll(`document.querySelector(".status.live")`, nil))

	s.cli("budget", run, "freeze")
	s.do("head and tree say that it is frozen", chromedp.WaitVisible("main .bar .s-frozen"), press("1"), s.sees("The run is frozen: only closing turns"))
	s.do("unfreeze", press("b"), chromedp.WaitVisible(`dialog input[name=tokens]`), s.sees("a new limit, which lifts the freeze"), chromedp.SendKeys(`dialog input[name=tokens]`, kb.Enter), s.sees("frozen → at work"), press(kb.Enter), chromedp.WaitNotPresent("dialog"), chromedp.WaitNotPresent("main .bar .s-frozen"))
	s.do("raise the budget", press("b"), chromedp.WaitVisible(`dialog input[name=tokens]`), chromedp.SendKeys(`dialog input[name=tokens]`, "300000"+kb.Enter), s.sees("Tokens: 200k → 300k"), press(kb.Enter), chromedp.WaitNotPresent("dialog"))
	s.do("the new limit is shown", press("5"), s.sees("300k"), s.sees("tokens charged for calls whose usage is unknown"))
	s.do("why it stopped, of a run that has not", press("3"), s.sees("it has not stopped"), s.lacks("models 0ms"))
	s.do("hostile texts are texts", press("2"), s.sees("<script>window.hacked=1</script>"), s.sees(`\u202e`), s.sees(`\x1b[31mred \u2800\u3164\ufe01\U000e0100❤`+"\ufe0f"))
	var hacked bool
	s.do("no script of a model ran", chromedp.Evaluate(`"hacked" in window || !!document.querySelector("main img, main script")`, &hacked))
	if hacked {
		t.Error("a text of a model became markup")
	}
	s.do("cancel", press("x"), chromedp.WaitVisible("dialog input[name=why]"), chromedp.SendKeys("dialog input[name=why]", "seen enough"), chromedp.SetValue("dialog select", "now, abort running calls"), chromedp.SendKeys("dialog input[name=why]", kb.Enter), chromedp.WaitNotPresent("dialog"))
	s.do("why it stopped", press("3"), s.sees("seen enough"), chromedp.Poll(`document.querySelector(".status.ended")`, nil))
	s.compareEvents(run)
	s.checkAccessibility(run)
	s.takePictures(run)
	s.openFile(run)
}

// openFile opens the run as a file from disk, whose policy allows no request.
func (s *stage) openFile(run string) {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), "run.html")
	if err := os.WriteFile(path, []byte(s.cli("export", run, "--html")), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.do("the file opens", chromedp.Navigate("file://"+path), s.sees("assistant"), s.sees("a file"), s.sees(run), s.sees("exported 2"), press("?"), s.sees("views of the run"), s.lacks("steer"), press("?"))
	s.do("its transcript", press("2"), s.sees("<script>window.hacked=1</script>"))
	s.do("its end", press("3"), s.sees("seen enough"))
	s.do("its budget", press("5"), s.sees("300k"), chromedp.WaitVisible(".plot canvas"))
	s.do("its timeline", press("6"), chromedp.WaitVisible(".plot canvas"))
	for key, name := range map[string]string{"1": "tree", "2": "transcript", "3": "stop", "5": "budget", "6": "timeline", "7": "messages", "8": "events"} {
		s.do("its view "+name, press(key), chromedp.Poll(`document.querySelector(".tabs [aria-current]").textContent.endsWith("`+key+`")`, nil), chromedp.Sleep(200*time.Millisecond))
		s.checkWithAxe("file-" + name)
	}
	var hacked bool
	s.do("no script of a model ran", chromedp.Evaluate(`"hacked" in window`, &hacked))
	if hacked {
		s.t.Error("a text of a model became a script of the file")
	}
}

// compareEvents compares the events of the page with those of the command: their number, and the ids of those that it lists.
func (s *stage) compareEvents(run string) {
	s.t.Helper()
	lines := strings.Split(s.cli("events", run, "-o", "jsonl"), "\n")
	s.do("all events are there", press("8"), chromedp.Poll(`document.getElementById("events")?.dataset.count == `+quote(jsonNumber(len(lines))), nil))
	var shown []string
	s.do("their ids", chromedp.Evaluate(`[...document.querySelectorAll("#events li pre")].map(p => JSON.parse(p.textContent).id)`, &shown))
	var ids []string
	for _, line := range lines {
		var e struct{ ID string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			s.t.Fatal(err)
		}
		ids = append(ids, e.ID)
	}
	slices.Sort(ids)
	slices.Sort(shown)
	if len(lines) <= eventsShown && !slices.Equal(ids, shown) {
		s.t.Errorf("the page lists the events %q\nand the command %q", shown, ids)
	}
}

// eventsShown is how many events the page lists.
const eventsShown = 300

func jsonNumber(n int) string {
	raw, err := json.Marshal(n)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// views are the parts of the address of each view.
func views(run string) map[string]string {
	all := map[string]string{"runs": "#/runs", "inbox": "#/inbox", "nodes": "#/nodes"}
	for _, tab := range []string{"tree", "transcript", "stop", "questions", "budget", "timeline", "messages", "events", "logs"} {
		all[tab] = "#/run/" + run + "/" + tab
	}
	return all
}

// checkAccessibility looks at each view with axe-core.
func (s *stage) checkAccessibility(run string) {
	s.t.Helper()
	for name, hash := range views(run) {
		s.do("view "+name, chromedp.Evaluate("location.hash="+quote(hash), nil), chromedp.Sleep(400*time.Millisecond))
		s.checkWithAxe(name)
	}
}

// takePictures writes a picture of each view at three sizes, light and dark, and checks that none is wider than
// its window.
func (s *stage) takePictures(run string) {
	s.t.Helper()
	dir := filepath.Join(os.TempDir(), "troupe-page")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		s.t.Fatal(err)
	}
	for _, scheme := range []string{"light", "dark"} {
		for _, size := range [][2]int64{{400, 800}, {1280, 800}, {3840, 2160}} {
			s.do("size", emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}), chromedp.EmulateViewport(size[0], size[1]))
			for name, hash := range views(run) {
				var shot []byte
				var wide bool
				s.do("picture of "+name, chromedp.Evaluate("location.hash="+quote(hash), nil), chromedp.Sleep(250*time.Millisecond),
					chromedp.Evaluate(`document.documentElement.scrollWidth > innerWidth`, &wide), chromedp.CaptureScreenshot(&shot))
				if wide {
					s.t.Errorf("%s is wider than %d", name, size[0])
				}
				path := filepath.Join(dir, name+"-"+jsonNumber(int(size[0]))+"-"+scheme+".png")
				if err := os.WriteFile(path, shot, 0o644); err != nil {
					s.t.Fatal(err)
				}
			}
		}
	}
	s.t.Logf("pictures in %s", dir)
}
