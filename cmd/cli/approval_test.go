//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// readsKeys reports whether a terminal returns single keys instead of lines.
func (s *terminalScreen) readsKeys() bool {
	s.t.Helper()
	mode, err := unix.IoctlGetTermios(int(s.terminal.Fd()), unix.TCGETS)
	if err != nil {
		s.t.Fatal(err)
	}
	isRaw, isSilent := mode.Lflag&unix.ICANON == 0, mode.Lflag&unix.ECHO == 0
	if isRaw != isSilent || mode.Lflag&unix.ISIG == 0 || mode.Oflag&unix.OPOST == 0 {
		s.t.Errorf("the terminal has the mode %+v", mode)
	}
	return isRaw
}

// askingHome has an agent that asks for an approval of each of two commands.
func askingHome(t *testing.T) testHome {
	t.Helper()
	return newTestHome(t, map[string]string{"hand.md": "---\nname: hand\ndescription: Works.\ntools: Bash\n---\nWork.\n", "work/note.md": "", "work.yaml": `
default:
  - calls: [{name: shell, args: {command: touch one}}]
  - calls: [{name: shell, args: {command: touch two}}]
  - text: "{{last}}"
`})
}

// askingArgs run the agent of askingHome.
func askingArgs(more ...string) []string {
	return append([]string{"run", "-m", "script/work.yaml", "--dir", "work", "--agents", ".", "--agent", "hand", "--run-id", "asked", "work"}, more...)
}

// A terminal returns single keys only while a question is on it. However the command ends, the terminal is as before.
//
//behaviour:shows E3
func TestTheTerminalIsPutBack(t *testing.T) {
	t.Parallel()
	signals := func(list ...syscall.Signal) func(*terminalScreen, testHome) {
		return func(s *terminalScreen, _ testHome) {
			for i, signal := range list {
				if err := s.cmd.Process.Signal(signal); err != nil {
					s.t.Fatal(err)
				}
				if i+1 < len(list) {
					s.until("stopping at the next safe boundary")
				}
			}
		}
	}
	for name, c := range map[string]struct {
		end  func(*terminalScreen, testHome)
		code int
	}{
		"Ctrl-C":    {func(s *terminalScreen, _ testHome) { s.press("\x03") }, 130},
		"Ctrl-D":    {func(s *terminalScreen, _ testHome) { <-time.After(answerGuard); s.press("\x04") }, 5},
		"SIGTERM":   {signals(syscall.SIGTERM), 143},
		"two kills": {signals(syscall.SIGTERM, syscall.SIGTERM), 143},
		"SIGHUP":    {signals(syscall.SIGHUP), -1},
		"SIGQUIT":   {signals(syscall.SIGQUIT), 2},
		"a cancel": {func(s *terminalScreen, h testHome) {
			if out, err := h.command("cancel", "asked").CombinedOutput(); err != nil {
				s.t.Errorf("%v\n%s", err, out)
			}
		}, 130},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := askingHome(t)
			s := openScreen(t, h.command(askingArgs()...), 80, 24)
			if s.readsKeys() {
				t.Error("the terminal returns keys before the question")
			}
			s.until("touch one", "one key:")
			if !s.readsKeys() {
				t.Error("the terminal returns lines at the question")
			}
			c.end(s, h)
			if code := s.leave(); code != c.code {
				t.Errorf("exit %d\n%s", code, s)
			}
			if s.readsKeys() {
				t.Errorf("the terminal returns keys after the end\n%s", s)
			}
			if _, err := os.Stat(filepath.Join(h.home, "work/one")); err == nil {
				t.Error("the command ran")
			}
		})
	}
}

// A question that is answered elsewhere leaves the screen, and a key that comes then does not answer the next one.
//
//behaviour:shows E3
func TestAQuestionThatIsAnsweredElsewhere(t *testing.T) {
	t.Parallel()
	h := askingHome(t)
	s := openScreen(t, h.command(askingArgs()...), 100, 40)
	s.until("$ touch one", "one key:")
	if out, err := h.command("answer", "asked", "1-0.0", "deny", "not this one").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.until("this question is closed", "always: shell(touch two)", "one key:")
	s.press("y")
	s.until("too early")
	<-time.After(answerGuard)
	s.press("r")
	s.until("no, because (Esc goes back):")
	if s.readsKeys() {
		t.Error("a reason is a line")
	}
	s.press("rather\x1b")
	for strings.Count(s.allWritten(), "always: shell(touch two)") < 2 { // the question, again
		<-time.After(pollPause)
	}
	<-time.After(answerGuard)
	s.press("r")
	s.until("no, because (Esc goes back):")
	s.press("nor that\n")
	if code := s.leave(); code != 0 || !strings.Contains(s.String(), "nor that") || s.readsKeys() {
		t.Errorf("exit %d\n%s", code, s)
	}
	for _, name := range []string{"one", "two"} {
		if _, err := os.Stat(filepath.Join(h.home, "work", name)); err == nil {
			t.Errorf("the call that touches %s ran", name)
		}
	}
}

// Of two runs at one terminal, one asks at a time, so that a key answers the question on the screen and the terminal is put
// back as it was.
func TestTwoRunsAtOneTerminalAskOneAfterTheOther(t *testing.T) {
	t.Parallel()
	h := askingHome(t)
	troupe := h.command(askingArgs()...)
	shell := exec.Command("sh", "-c", `"$@" --run-id second </dev/tty & "$@"; wait; echo "both ended"`, "sh")
	shell.Args = append(shell.Args, troupe.Args...)
	shell.Dir, shell.Env = troupe.Dir, troupe.Env
	s := openScreen(t, shell, 100, 60)
	s.until("one key:")
	s.untilWritten("another program reads the keys of this terminal")
	if n := strings.Count(s.allWritten(), "always: shell(touch one)"); n != 1 {
		t.Errorf("%d questions were put\n%s", n, s)
	}
	for _, run := range []string{"asked", "second"} {
		if out, err := h.command("cancel", run).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
	s.until("both ended")
	if s.leave(); s.readsKeys() {
		t.Errorf("the shell gets keys\n%s", s)
	}
}

// Ctrl-Z puts the terminal back for the shell, and fg puts the question again.
func TestAQuestionAfterCtrlZ(t *testing.T) {
	t.Parallel()
	h := askingHome(t)
	troupe := h.command(askingArgs()...)
	shell := exec.Command("sh", "-c", `set -m; "$@"; echo "stopped 1"; read go; fg; echo "stopped 2"; read go; fg; echo "ended with $?"`, "sh")
	shell.Args = append(shell.Args, troupe.Args...)
	shell.Dir, shell.Env = troupe.Dir, troupe.Env
	s := openScreen(t, shell, 100, 50)
	s.until("$ touch one", "one key:")
	s.press("\x1a")
	s.until("stopped 1")
	if s.readsKeys() {
		t.Errorf("the shell gets keys\n%s", s)
	}
	s.press("\n")
	for !s.readsKeys() {
		<-time.After(pollPause)
	}
	for strings.Count(s.allWritten(), "always: shell(touch one)") < 2 { // the question, again
		<-time.After(pollPause)
	}
	s.press("y")
	s.until("too early")
	<-time.After(answerGuard)
	s.press("x")
	s.until("that key means nothing at this question")
	<-time.After(answerGuard)
	s.press("s")
	s.until("always: shell(touch two)", "one key:")
	<-time.After(answerGuard)
	s.press("r")
	s.until("no, because")
	s.press("\x1a")
	s.until("stopped 2")
	s.press("\nnot now\n")
	s.until("ended with 0")
	if code := s.leave(); code != 0 || s.readsKeys() || !strings.Contains(s.String(), "denied by a person: not now") {
		t.Errorf("exit %d\n%s", code, s)
	}
}

// A run that continues in the background leaves the terminal to the shell, whose line editor has a mode of its own: it is
// not the mode to go back to when the run has the terminal again.
func TestAQuestionAfterBackground(t *testing.T) {
	t.Parallel()
	h := askingHome(t)
	troupe := h.command(askingArgs()...)
	shell := exec.Command("sh", "-c", `set -m; "$@"; stty -icanon -echo; bg; echo "in the background"; read go; stty icanon echo; fg; echo "ended with $?"`, "sh")
	shell.Args = append(shell.Args, troupe.Args...)
	shell.Dir, shell.Env = troupe.Dir, troupe.Env
	s := openScreen(t, shell, 100, 50)
	s.until("$ touch one", "one key:")
	s.press("\x1a")
	s.until("in the background")
	s.press("\n")
	for strings.Count(s.allWritten(), "always: shell(touch one)") < 2 { // the question, again
		<-time.After(pollPause)
	}
	<-time.After(answerGuard)
	s.press("s")
	s.until("always: shell(touch two)", "one key:")
	<-time.After(answerGuard)
	s.press("n")
	s.until("ended with 0")
	if code := s.leave(); code != 0 || s.readsKeys() {
		t.Errorf("exit %d\n%s", code, s)
	}
}

// A run that continues in the background does not read the terminal: what is typed there is the shell's. A line is typed
// at the first question, which an agent asks, a key at the second one.
func TestARunInTheBackgroundReadsNoTerminal(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{"keys": "touch one", "lines": "Which one?"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := askingHome(t)
			if name == "lines" {
				h = newTestHome(t, map[string]string{"hand.md": "---\nname: hand\ndescription: Works.\n---\nWork.\n", "work/note.md": "",
					"work.yaml": "default:\n  - calls: [{name: ask_human, args: {question: \"Which one?\"}}]\n  - text: \"{{last}}\"\n"})
			}
			troupe := h.command(askingArgs()...)
			shell := exec.Command("bash", "-c", `set -m; "$@"; bg; echo "in the background"; read a; read b; echo "got $a $b"; jobs; fg; echo "ended with $?"`, "sh")
			shell.Args = append(shell.Args, troupe.Args...)
			shell.Dir, shell.Env = troupe.Dir, troupe.Env
			s := openScreen(t, shell, 100, 50)
			s.until(script, ": ")
			<-time.After(answerGuard)
			s.press("\x1a")
			s.until("in the background")
			s.until("waits: troupe is in the background")
			s.press("one\n")
			<-time.After(answerGuard)
			s.press("two\n")
			s.until("got one two")
			if strings.Contains(s.allWritten(), "Stopped") && strings.Count(s.allWritten(), "Stopped") > 1 {
				t.Errorf("the run was stopped again\n%s", s)
			}
			for strings.Count(s.allWritten(), script) < 2 { // the question, again
				<-time.After(pollPause)
			}
			<-time.After(answerGuard)
			s.press("\x04")
			s.until("ended with 5")
			if code := s.leave(); code != 0 || s.readsKeys() {
				t.Errorf("exit %d\n%s", code, s)
			}
		})
	}
}

// Lines that are printed while a question is on the screen stand above its prompt.
func TestLinesAboveAQuestion(t *testing.T) {
	t.Parallel()
	h := askingHome(t)
	s := openScreen(t, h.command(askingArgs()...), 80, 40)
	s.until("one key:")
	s.press("\x03")
	s.until("stopping at the next safe boundary")
	if code := s.leave(); code != 130 {
		t.Errorf("exit %d", code)
	}
	for line := range strings.Lines(s.String()) {
		if strings.Contains(line, "stopping at") && !strings.HasPrefix(line, "stopping at") {
			t.Errorf("the line is broken: %q\n%s", line, s)
		}
	}
}

// A terminal of 80 columns shows the whole question, below its row.
func TestQuestionsOnATerminal(t *testing.T) {
	t.Parallel()
	h := askingHome(t)
	if out, code := h.outputOf(askingArgs()...); code != 5 {
		t.Fatalf("exit %d: %s", code, out)
	}
	s := openScreen(t, h.command("questions", "asked"), 80, 24)
	s.until("EXPIRES", "May this run?", "$ touch one", "task: work")
	if code := s.leave(); code != 0 {
		t.Errorf("exit %d\n%s", code, s)
	}
}
