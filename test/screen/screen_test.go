//go:build e2e

package screen

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	patience   = 60 * time.Second
	lookPause  = 100 * time.Millisecond
	answerWait = time.Second // for which a question must be on the screen before a key answers it
)

var files = map[string]string{
	"hand.md":      "---\nname: hand\ndescription: Works.\ntools: Bash, Write\n---\nWork.\n",
	"work/note.md": "old\n",
	"work.yaml": `
default:
  - calls: [{name: write_file, args: {path: note.md, content: "new\n"}}]
  - calls: [{name: shell, args: {command: sleep 100}}]
  - text: "{{last}}"
`,
}

// desk is a terminal of tmux with troupe top in it, and the node that it shows.
type desk struct {
	t                 *testing.T
	bin, home, socket string
	size              [2]int
	node              *exec.Cmd
}

// TestAPersonWorksUnderTmux: at 80×24 and at 200×50 a person starts a run, watches it, approves a change once and a command for
// the directory, raises the budget, cancels, forks and compares, while the node is killed and started again.
//
//behaviour:shows I4
func TestAPersonWorksUnderTmux(t *testing.T) {
	bin := t.TempDir()
	for name, folder := range map[string]string{"troupe": "cli", "troupe-node": "node"} {
		if out, err := exec.Command("go", "build", "-o", filepath.Join(bin, name), "../../cmd/"+folder).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	for _, size := range [][2]int{{80, 24}, {200, 50}} {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) { newDesk(t, bin, size).work() })
	}
}

// work does all tasks of a person.
func (d *desk) work() {
	d.until("[R Runs]", "There are no runs yet", "n new")
	d.keys("n")
	d.until("Start a run", "⏎ start")
	d.text("mend the note", "hand", ".", "work", "script/work.yaml", "100k")
	d.keys("Enter")
	d.until("[1 Tree]", "? hand", "/100k")
	d.restartNode()
	d.keys("4")
	d.until("-old", "+new", "y once", "p this dir")
	d.answer("y")
	d.until("$ sleep 100")
	if data, err := os.ReadFile(filepath.Join(d.home, "work/note.md")); string(data) != "new\n" {
		d.t.Errorf("the approved change: %q %v", data, err)
	}
	d.answer("p")
	d.until("No open questions.", "is allowed in")
	d.keys("1")
	d.until("● hand", "sleep 100")
	d.keys("b")
	d.text("200k")
	d.keys("Enter")
	d.until("to 200k tokens (now 100k)?", "y yes")
	d.keys("y")
	d.until("/200k")
	d.keys("c")
	d.until("! now")
	d.keys("!")
	d.until("canceled (tool aborted)")
	d.restartNode()
	d.keys("2")
	d.until("[2 Transcript]", "sleep 100", "f fork")
	d.keys("f")
	d.until("after a turn of hand (root)", "⏎ fork")
	d.keys("Up", "C-u")
	d.text("1", "do it in another way", "", ".")
	d.keys("Enter")
	d.until("[1 Tree]", "work-fork-", "? hand")
	d.keys("v")
	d.until("Compare run", "⏎ compare")
	d.keys("Enter")
	d.until("[Compare]", "First difference: root", "do it in another way", "the first difference")
	d.keys("q")
	d.until("the screen is left")
}

func newDesk(t *testing.T, bin string, size [2]int) *desk {
	t.Helper()
	d := &desk{t: t, bin: bin, home: t.TempDir(), size: size}
	for name, text := range files {
		path := filepath.Join(d.home, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	sockets, err := os.MkdirTemp("", "tmux") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	d.socket = filepath.Join(sockets, "s")
	t.Cleanup(func() {
		_, _ = d.tmux("kill-server") // it may not have started
		_ = os.RemoveAll(sockets)
		d.killNode()
	})
	d.startNode()
	if out, err := d.tmux("-f", os.DevNull, "new-session", "-d", "-x", fmt.Sprint(size[0]), "-y", fmt.Sprint(size[1]), "-c", d.home, "troupe top; echo the screen is left; cat"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return d
}

// environment is that of the programs: a home of its own, no keys, and no node of the person who runs the test.
func (d *desk) environment() []string {
	return []string{"PATH=" + d.bin + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME=" + d.home, "XDG_STATE_HOME=" + filepath.Join(d.home, "state"),
		"XDG_CONFIG_HOME=" + filepath.Join(d.home, "config"), "OLLAMA_HOST=127.0.0.1:1", "TERM=xterm-256color", "LC_ALL=C.UTF-8", "NATS_URL=", "NATS_CONTEXT="}
}

func (d *desk) tmux(args ...string) (string, error) {
	cmd := exec.Command("tmux", append([]string{"-S", d.socket}, args...)...)
	cmd.Dir, cmd.Env = d.home, d.environment()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// startNode starts a node. The screen connects when it serves.
func (d *desk) startNode() {
	d.t.Helper()
	d.node = exec.Command(filepath.Join(d.bin, "troupe-node"), "--root", d.home, "--http", "off", "--nats-port", "-1", "--durability", "lazy")
	d.node.Dir, d.node.Env = d.home, d.environment()
	if err := d.node.Start(); err != nil {
		d.t.Fatal(err)
	}
	ready := exec.Command(filepath.Join(d.bin, "troupe"), "nodes", "list")
	for end := time.Now().Add(patience); ; <-time.After(lookPause) {
		look := *ready
		look.Dir, look.Env = d.home, d.environment()
		if out, err := look.CombinedOutput(); err == nil {
			return
		} else if time.Now().After(end) {
			d.t.Fatalf("the node does not serve: %v\n%s", err, out)
		}
	}
}

func (d *desk) killNode() {
	if d.node != nil {
		_ = d.node.Process.Kill()
		_ = d.node.Wait() // it was killed
	}
}

// restartNode kills the node and starts it again. The screen notices both.
func (d *desk) restartNode() {
	d.t.Helper()
	d.killNode()
	d.until("behind", "no node answers")
	d.startNode()
	d.until("● live")
}

// keys presses keys by the names that tmux has for them.
func (d *desk) keys(names ...string) {
	d.t.Helper()
	if out, err := d.tmux(append([]string{"send-keys"}, names...)...); err != nil {
		d.t.Fatalf("%v\n%s", err, out)
	}
}

// text types the values of fields, with a tab between them.
func (d *desk) text(values ...string) {
	d.t.Helper()
	for i, v := range values {
		if i > 0 {
			d.keys("Tab")
		}
		if out, err := d.tmux("send-keys", "-l", v); v != "" && err != nil {
			d.t.Fatalf("%v\n%s", err, out)
		}
	}
}

// answer presses a key at a question that the person has had time to read.
func (d *desk) answer(key string) {
	d.t.Helper()
	<-time.After(answerWait)
	d.keys(key)
}

// until waits until the screen has all of some texts.
func (d *desk) until(texts ...string) {
	d.t.Helper()
	for end := time.Now().Add(patience); ; <-time.After(lookPause) {
		screen, err := d.tmux("capture-pane", "-p")
		missing := ""
		for _, text := range texts {
			if !strings.Contains(screen, text) {
				missing = text
			}
		}
		if err == nil && missing == "" {
			return
		}
		if time.Now().After(end) {
			d.t.Fatalf("no %q on the screen: %v\n%s", missing, err, screen)
		}
	}
}
