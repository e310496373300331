package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"

	"github.com/troupe-run/troupe/agent/event"
)

// terminalScreen is a program on a terminal whose screen can be read.
type terminalScreen struct {
	t        *testing.T
	cmd      *exec.Cmd
	terminal *os.File
	emulator *vt.Emulator
	mu       sync.Mutex
	written  strings.Builder // all that was written, also what is not on the screen any more
	more     chan struct{}   // closed when the program is gone
}

// openScreen starts a command on a terminal.
func openScreen(t *testing.T, cmd *exec.Cmd, columns, rows int) *terminalScreen {
	t.Helper()
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: uint16(rows), Cols: uint16(columns)})
	if err != nil {
		t.Fatal(err)
	}
	s := &terminalScreen{t: t, cmd: cmd, terminal: terminal, emulator: vt.NewEmulator(columns, rows), more: make(chan struct{}, 1)}
	go func() { _, _ = io.Copy(terminal, s.emulator) }() // what a terminal answers; it ends with the emulator
	go func() {
		defer close(s.more)
		b := make([]byte, 4096)
		for {
			n, err := terminal.Read(b)
			s.mu.Lock()
			s.written.Write(b[:n])
			_, _ = s.emulator.Write(b[:n]) // it keeps all
			s.mu.Unlock()
			if err != nil { // the program is gone
				return
			}
			select {
			case s.more <- struct{}{}:
			default:
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = terminal.Close()
		_ = s.emulator.Close()
	})
	return s
}

func (s *terminalScreen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.emulator.String()
}

func (s *terminalScreen) allWritten() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.written.String()
}

// until waits until the screen has all of some texts.
func (s *terminalScreen) until(texts ...string) { s.t.Helper(); s.waitFor(s.String, texts) }

// untilWritten waits for texts that another program may have overwritten on the screen.
func (s *terminalScreen) untilWritten(texts ...string) { s.t.Helper(); s.waitFor(s.allWritten, texts) }

func (s *terminalScreen) waitFor(read func() string, texts []string) {
	s.t.Helper()
	late := time.After(patience)
	for {
		missing := ""
		screen := read()
		for _, text := range texts {
			if !strings.Contains(screen, text) {
				missing = text
			}
		}
		if missing == "" {
			return
		}
		select {
		case _, ok := <-s.more:
			if !ok && !strings.Contains(read(), missing) {
				s.t.Fatalf("the program ended without %q:\n%s", missing, s)
			}
		case <-late:
			s.t.Fatalf("no %q on the screen:\n%s", missing, s)
		}
	}
}

// press types keys.
func (s *terminalScreen) press(keys string) {
	s.t.Helper()
	if _, err := s.terminal.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// leave waits for the end of the program, and returns its exit code.
func (s *terminalScreen) leave() int {
	s.t.Helper()
	for range s.more {
	}
	return exitOf(s.t, s.cmd.Wait())
}

// startOwner starts a node that owns the state directory of a home.
func startOwner(s testHome) *exec.Cmd {
	s.t.Helper()
	cmd := exec.Command("testnode", filepath.Join(s.home, "state/troupe"), s.home)
	cmd.Dir, cmd.Env, cmd.Stderr = s.home, append(os.Environ(), testEnv(s.home)...), os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		_, err = out.Read(make([]byte, 1))
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	return cmd
}

// startWatchedRun starts a run that asks for an approval, and then runs a command until it is canceled.
func startWatchedRun(t *testing.T) (s testHome, node *exec.Cmd) {
	s = newTestHome(t, map[string]string{"hand.md": "---\nname: hand\ndescription: Works.\ntools: Bash, Write\n---\nWork.\n", "work/note.md": "old\n", "work.yaml": `
default:
  - calls: [{name: write_file, args: {path: note.md, content: "new\n"}}]
  - calls: [{name: shell, args: {command: sleep 100}}]
  - text: "{{last}}"
`})
	node = startOwner(s)
	out, err := s.command("start", "-q", "--run-id", "watched", "-m", "script/work.yaml", "--dir", "work", "--agents", ".", "--agent", "hand", "--max-tokens", "100000", "mend the note").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return s, node
}

// TestTopByKeyboard: on a small and on a large terminal a person watches a run, approves a change that the screen shows,
// raises the budget and cancels, all by keys.
//
//behaviour:shows I4
func TestTopByKeyboard(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{80, 24}, {200, 50}} {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
			t.Parallel()
			s, _ := startWatchedRun(t)
			screen := openScreen(t, s.command("top"), size[0], size[1])
			screen.until("[R Runs]", "mend the note", "parked", "Inbox 1", "⏎ open")
			screen.press("\r")
			screen.until("[1 Tree]", "? hand", "/100k")
			screen.press("4")
			screen.until("-old", "+new", "y once", "a this run", "p this dir", "n no")
			<-time.After(answerGuard)
			screen.press("p") // this node has no user whose rules it reads
			screen.until("reads no rules of a user")
			screen.press("y")
			screen.until("$ sleep 100")
			if data, err := os.ReadFile(filepath.Join(s.home, "work/note.md")); string(data) != "new\n" {
				t.Errorf("the approved change: %q %v", data, err)
			}
			<-time.After(answerGuard)
			screen.press("a")
			screen.until("No open questions.")
			screen.press("1")
			screen.until("● hand", "shell sleep 100")
			screen.press("b200k\r")
			screen.until("set the limit of run watched to 200k tokens (now 100k)?", "y yes")
			screen.press("y")
			screen.until("/200k")
			screen.press("2")
			screen.until("[2 Transcript]", "→ shell", "sleep 100")
			screen.press("c")
			screen.until("cancel run watched?", "! now")
			screen.press("!")
			screen.until("watched canceled (tool aborted)")
			screen.press("3")
			screen.until("reason", "canceled (tool aborted)")
			screen.press("q")
			if code := screen.leave(); code != 0 {
				t.Errorf("exit %d\n%s", code, screen)
			}
		})
	}
}

// TestTopStartsForksAndCompares: on a small and on a large terminal a person starts a run from a form, reads its log entries,
// forks it after a turn with a message, and compares both, all by keys.
//
//behaviour:shows I4
func TestTopStartsForksAndCompares(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{80, 24}, {200, 50}} {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
			t.Parallel()
			s := newTestHome(t, map[string]string{"hand.md": "---\nname: hand\ndescription: Works.\ntools: Read\n---\nWork.\n", "work/note.md": "old\n",
				"work.yaml": "default:\n  - calls: [{name: read_file, args: {path: note.md}}]\n  - text: \"I have read it.\"\n"})
			startOwner(s)
			screen := openScreen(t, s.command("top"), size[0], size[1])
			screen.until("[R Runs]", "There are no runs yet", "n new")
			screen.press("n")
			screen.until("Start a run", "Task", "Limit in tokens", "⏎ start", "esc leave")
			screen.press("\r")
			screen.until("Task must not be empty")
			screen.press("read the note\tnosuch\t.\twork\tscript/work.yaml\t200k\r")
			screen.until("there is no agent", "Start a run") // the form stays
			screen.press("\x1b[A\x1b[A\x1b[A\x1b[A\x15hand\r")
			screen.until("[1 Tree]", "completed", "hand", "/200k")
			screen.press("9")
			screen.until("KINDS of root", "submitted", "replied")
			screen.press("o")
			screen.until("of the supervisor", "opened")
			screen.press("\r")
			screen.until("Entry ", "from ", "opened", "epoch")
			screen.press("G")
			screen.until("|\n000")
			screen.press("\x1b")
			screen.until("of the supervisor", "o other log")
			screen.press("2")
			screen.until("[2 Transcript]", "I have read it.", "turn 2", "f fork")
			screen.press("f")
			screen.until("after a turn of hand (root)", "After turn", "Message", "⏎ fork")
			screen.press("\x1b[A\x151\tand say how long it is\t\t.\r")
			screen.until("[1 Tree]", "hand  turn")
			screen.until("completed")
			screen.press("v")
			screen.until("Compare run", "⏎ compare")
			screen.press("\r")
			screen.until("[Compare]", "First difference: root, turn", event.KindMessageUser, "and say how long it is", "the first difference")
			screen.press("R")
			screen.until("[R Runs]", " of 2")
			screen.press("vlast\r")
			screen.until("[Compare]", "No difference")
			screen.press("q")
			if code := screen.leave(); code != 0 {
				t.Errorf("exit %d\n%s", code, screen)
			}
			if copies, err := filepath.Glob(filepath.Join(s.home, "work-fork-*", "note.md")); len(copies) != 1 || err != nil {
				t.Errorf("the copies of the directory: %v %v", copies, err)
			}
		})
	}
}

// answerGuard is how long the screen must show a question before a key answers it.
const answerGuard = time.Second

// TestTopAfterARestartOfTheNode: when the node is gone the screen says that it is behind; it goes on where it was when
// the node is back.
func TestTopAfterARestartOfTheNode(t *testing.T) {
	t.Parallel()
	s, node := startWatchedRun(t)
	screen := openScreen(t, s.command("top", "watched"), 80, 24)
	screen.until("[1 Tree]", "? hand", "● live")
	screen.press("8")
	screen.until("[8 Events]", event.KindQueryAsked)
	asked := strings.Count(screen.String(), event.KindQueryAsked)
	if err := node.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	screen.until("behind", "no node answers")
	startOwner(s)
	screen.until("● live")
	if out, err := s.command("answer", "watched", "1-0.0", "deny", "not now").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	screen.until(event.KindQueryAnswered)
	if again := strings.Count(screen.String(), event.KindQueryAsked); again > asked {
		t.Errorf("events are shown twice:\n%s", screen)
	}
	screen.press("\x03")
	if code := screen.leave(); code != 0 {
		t.Errorf("exit %d\n%s", code, screen)
	}
}

// TestTopPrintsTheEndWithoutANode: a run whose node ended with it has no screen, but a result.
func TestTopPrintsTheEndWithoutANode(t *testing.T) {
	t.Parallel()
	s := newTestHome(t, map[string]string{"one.yaml": "default: [{text: all is done}]"})
	if out, err := s.command("run", "-q", "--run-id", "over", "-m", "script/one.yaml", "go").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	screen := openScreen(t, s.command("top", "last"), 80, 24)
	if code := screen.leave(); code != 0 || !strings.Contains(screen.String(), "over has ended (completed), and no node is running") || !strings.Contains(screen.String(), "all is done") ||
		!strings.Contains(screen.String(), "troupe export over --html") {
		t.Errorf("exit %d\n%s", code, screen)
	}
}

// TestTopOfARunThatHasNotEndedWithoutANode: the command says what continues the run, and what shows it.
func TestTopOfARunThatHasNotEndedWithoutANode(t *testing.T) {
	t.Parallel()
	s, node := startWatchedRun(t)
	watching := openScreen(t, s.command("top", "watched"), 80, 24)
	watching.until("? hand")
	if err := errors.Join(node.Process.Kill(), watching.cmd.Process.Kill()); err != nil {
		t.Fatal(err)
	}
	_ = node.Wait() // it was killed
	screen := openScreen(t, s.command("top", "watched"), 200, 24)
	if code := screen.leave(); code != exitNoNode || !strings.Contains(screen.String(), "watched has not ended (") || !strings.Contains(screen.String(), "troupe run --resume watched continues it; troupe transcript watched") {
		t.Errorf("exit %d\n%s", code, screen)
	}
}

// TestTopNeedsATerminal: without a terminal, a node or a run the command says what to do instead.
func TestTopNeedsATerminal(t *testing.T) {
	t.Parallel()
	s := newTestHome(t, nil)
	out, err := s.command("top").CombinedOutput()
	if code := exitOf(t, err); code != exitUsage || !strings.Contains(string(out), "error: troupe top needs an interactive terminal") || !strings.Contains(string(out), "hint: troupe list") {
		t.Errorf("without a terminal: exit %d\n%s", code, out)
	}
	fails := func(what, want string, code int, args ...string) {
		t.Helper()
		screen := openScreen(t, s.command(args...), 80, 24)
		if got := screen.leave(); got != code || !strings.Contains(screen.String(), want) {
			t.Errorf("%s: exit %d\n%s", what, got, screen)
		}
	}
	fails("without a node", "no troupe node is running", exitNoNode, "top")
	startOwner(s)
	fails("without the run", "there is no run", exitUsage, "top", "nosuch")
	fails("with two runs", "top takes RUN, not 2 arguments", exitUsage, "top", "a", "b")
	for variable, want := range map[string]string{"TERM=dumb": "needs an interactive terminal", "TROUPE_CALL=1-0": "an agent cannot answer questions"} {
		cmd := s.command("top")
		cmd.Env = append(cmd.Env, variable)
		screen := openScreen(t, cmd, 80, 24)
		if code := screen.leave(); code != exitUsage || !strings.Contains(screen.String(), want) {
			t.Errorf("with %s: exit %d\n%s", variable, code, screen)
		}
	}
}
