package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/internal/cli/exit"
)

// patience is how long a test waits for something that must come.
const patience = 60 * time.Second

// Between two looks at what a test waits for lies some time: who looks all the time
// takes a core from those it waits for, and who starts a process for a look takes more.
const (
	pollPause        = 10 * time.Millisecond
	processPollPause = 300 * time.Millisecond
)

// testHome is a home with script files, for processes of one test.
type testHome struct {
	t    *testing.T
	home string
}

func newTestHome(t *testing.T, files map[string]string) testHome {
	t.Helper()
	s := testHome{t, t.TempDir()}
	for name, text := range files {
		path := filepath.Join(s.home, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s testHome) command(args ...string) *exec.Cmd {
	cmd := exec.Command("troupe", args...)
	cmd.Dir = s.home
	cmd.Env = append(os.Environ(), testEnv(s.home)...)
	cmd.WaitDelay = patience
	return cmd
}

// watchedOutput is output that can be waited for.
type watchedOutput struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func watchOutput(r io.Reader) *watchedOutput {
	w := &watchedOutput{more: make(chan struct{}, 1)}
	go func() {
		in := bufio.NewReader(r)
		for {
			b := make([]byte, 4096)
			n, err := in.Read(b)
			w.mu.Lock()
			w.text.Write(b[:n])
			w.mu.Unlock()
			select {
			case w.more <- struct{}{}:
			default:
			}
			if err != nil {
				close(w.more)
				return
			}
		}
	}()
	return w
}

func (w *watchedOutput) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// until waits for a text to come.
func (w *watchedOutput) until(t *testing.T, text string) {
	t.Helper()
	w.untilTimes(t, text, 1)
}

// untilTimes waits for a text to come for the nth time: what is typed before a prompt is dropped.
func (w *watchedOutput) untilTimes(t *testing.T, text string, n int) {
	t.Helper()
	late := time.After(patience)
	for strings.Count(w.String(), text) < n {
		select {
		case _, ok := <-w.more:
			if !ok && strings.Count(w.String(), text) < n {
				t.Fatalf("the output ended without %q:\n%s", text, w)
			}
		case <-late:
			t.Fatalf("no %q in:\n%s", text, w)
		}
	}
}

// end waits for the end of the output.
func (w *watchedOutput) end() string {
	for range w.more { // until it is closed
	}
	return w.String()
}

func exitOf(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	t.Fatal(err)
	return 0
}

// Many runs that are started together on one state directory all end with a
// result, though each may find another as its owner, which then goes away.
func TestTwentyRunsAtOnce(t *testing.T) {
	t.Parallel()
	const runs = 20
	s := newTestHome(t, map[string]string{"two.yaml": `
agents:
  assistant:
    - calls: [{name: delegate, args: {agent: historian, task: "who wrote it"}}]
    - text: "he says: {{last}}"
  historian:
    - text: one person
      delay: 100ms
`})
	var wg sync.WaitGroup
	for i := range runs {
		wg.Go(func() {
			cmd := s.command("run", "-o", "json", "-m", "script/two.yaml", "--run-id", fmt.Sprintf("run-%d", i), "ask")
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			var r event.Result
			if err != nil || json.Unmarshal(out, &r) != nil || r.Subtype != "success" || r.Text != "he says: one person" {
				t.Errorf("run %d: %v\n%s\n%s", i, err, out, stderr.String())
			}
		})
	}
	wg.Wait()
	out, err := s.command("list", "-o", "jsonl").Output()
	if err != nil || strings.Count(string(out), `"state":"finished"`) != runs {
		t.Errorf("%v: not %d finished runs:\n%s", err, runs, out)
	}
}

// The owner that a run joined is killed: the process of that run becomes the
// next owner, and its run goes on from its logs.
func TestARunOutlivesTheOwnerItJoined(t *testing.T) {
	t.Parallel()
	s := newTestHome(t, map[string]string{"slow.yaml": slowScript, "quick.yaml": "default: [{text: at last, delay: 10s}]"})
	begin := func(script, ready string) (*exec.Cmd, *watchedOutput, *bytes.Buffer) {
		cmd, stdout := s.command("run", "-o", "json", "-m", "script/"+script, "wait"), &bytes.Buffer{}
		cmd.Stdout = stdout
		pipe, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		stderr := watchOutput(pipe)
		stderr.until(t, ready)
		return cmd, stderr, stdout
	}
	owner, lost, _ := begin("slow.yaml", "root-1-0 historian")
	guest, stderr, stdout := begin("quick.yaml", event.KindAgentSpawned)
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	lost.end()
	if exitOf(t, owner.Wait()) == 0 {
		t.Error("the owner was killed")
	}
	stderr.until(t, "the node is gone")
	stderr.end()
	var r event.Result
	if code := exitOf(t, guest.Wait()); code != 0 || json.Unmarshal(stdout.Bytes(), &r) != nil || r.Text != "at last" {
		t.Errorf("exit %d\n%s\n%s", code, stdout, stderr)
	}
	if strings.Count(stdout.String(), "\n") != 1 {
		t.Errorf("not one result: %s", stdout)
	}
}

// hasSocket reports whether a process has a socket open.
func hasSocket(pid int) bool {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	return err == nil && slices.ContainsFunc(files, func(file string) bool {
		to, err := os.Readlink(file)
		return err == nil && strings.HasPrefix(to, "socket:")
	})
}

// The process that has the logs is killed while another waits for a result there: that one reads the logs itself.
func TestAWaitForAResultOutlivesTheOwner(t *testing.T) {
	t.Parallel()
	s := newTestHome(t, map[string]string{"slow.yaml": "default: [{text: at last, delay: 10m}]"})
	const run = "01m7zzzzzzzzzzzzzzzzzzzzz2"
	owner := s.command("run", "-m", "script/slow.yaml", "--run-id", run, "wait")
	pipe, err := owner.StderrPipe()
	if err == nil {
		err = owner.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	began := watchOutput(pipe)
	began.until(t, event.KindAgentSpawned)
	waiting := s.command("result", "--wait", run)
	var stderr bytes.Buffer
	waiting.Stderr = &stderr
	if err := waiting.Start(); err != nil {
		t.Fatal(err)
	}
	for late := time.Now().Add(patience); !hasSocket(waiting.Process.Pid) && time.Now().Before(late); <-time.After(pollPause) {
	}
	<-time.After(answerGuard) // it has joined the owner on most machines; else it finds none, and says the same
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	began.end()
	_ = owner.Wait()
	if code := exitOf(t, waiting.Wait()); code != exit.NoNode || !strings.Contains(stderr.String(), "no node runs "+run) || !strings.Contains(stderr.String(), "--resume") {
		t.Errorf("exit %d: %s", code, &stderr)
	}
}

// A run ends by a cancel, and the process that owned the node ends with it: whoever
// asked hears of the end all the same. The model would go on for longer than it takes
// to ask, on any machine.
func TestCancelIsAnsweredWhenItsNodeEnds(t *testing.T) {
	t.Parallel()
	s := newTestHome(t, map[string]string{"slow.yaml": "default: [{text: at last, delay: 10m}]"})
	owner := s.command("run", "-m", "script/slow.yaml", "--run-id", "01m7zzzzzzzzzzzzzzzzzzzzz1", "wait")
	pipe, err := owner.StderrPipe()
	if err == nil {
		err = owner.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	stderr := watchOutput(pipe)
	stderr.until(t, event.KindAgentSpawned)
	out, err := s.command("cancel", "--now", "01m7zzzzzzzzzzzzzzzzzzzzz1", "-o", "json").Output()
	var c struct {
		Stopped []string      `json:"stopped"`
		Already bool          `json:"already_finished"`
		Result  *event.Result `json:"result"`
	}
	if code := exitOf(t, err); code != 0 || json.Unmarshal(out, &c) != nil || !slices.Equal(c.Stopped, []string{"root"}) || c.Already || c.Result == nil {
		t.Errorf("exit %d: %s", code, out)
	}
	stderr.end()
	if exitOf(t, owner.Wait()) == 0 {
		t.Error("the run that was canceled completed")
	}
}

// clerk has a tool whose process would outlive everybody.
const clerk = `---
name: clerk
description: Waits.
x-troupe: {tools: [{name: wait, description: Wait., command: "echo $$ > pid; exec sleep 600", effect: effect}]}
---
`

// startToolRun is a run whose tool is a process; it returns once that runs.
func startToolRun(t *testing.T) (cmd *exec.Cmd, stderr *watchedOutput, stdout *bytes.Buffer, pid int) {
	t.Helper()
	s := newTestHome(t, map[string]string{"clerk.md": clerk, "wait.yaml": "agents: {clerk: [{calls: [{name: wait}]}]}"})
	if err := syscall.Mkfifo(filepath.Join(s.home, "pid"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd, stdout = s.command("run", "-o", "json", "--agents", ".", "--agent", "clerk", "--dir", ".", "-m", "script/wait.yaml", "wait"), &bytes.Buffer{}
	cmd.Stdout = stdout
	pipe, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stderr = watchOutput(pipe)
	stderr.until(t, event.KindToolStarted)
	text, err := os.ReadFile(filepath.Join(s.home, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(string(text), &pid); err != nil {
		t.Fatal(err)
	}
	return cmd, stderr, stdout, pid
}

// waitUntilDead waits until a process is gone.
func waitUntilDead(t *testing.T, pid int) {
	t.Helper()
	for late := time.Now().Add(patience); syscall.Kill(pid, 0) == nil; <-time.After(pollPause) {
		if time.Now().After(late) {
			t.Fatalf("process %d is left as an orphan", pid)
		}
	}
}

// What a tool started ends with its run, however that ends.
func TestNoToolOutlivesItsRun(t *testing.T) {
	t.Parallel()
	t.Run("stopped", func(t *testing.T) {
		t.Parallel()
		cmd, stderr, stdout, pid := startToolRun(t)
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		stderr.end()
		if code := exitOf(t, cmd.Wait()); code != 130 || !strings.Contains(stdout.String(), `"subtype":"error_cancelled"`) {
			t.Errorf("exit %d\n%s\n%s", code, stdout, stderr)
		}
		waitUntilDead(t, pid)
	})
	t.Run("killed", func(t *testing.T) {
		t.Parallel()
		cmd, stderr, _, pid := startToolRun(t)
		for _, wait := range []string{"stopping at the next safe boundary", ""} {
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			stderr.until(t, wait)
		}
		stderr.end()
		if code := exitOf(t, cmd.Wait()); code != 130 {
			t.Errorf("exit %d\n%s", code, stderr)
		}
		waitUntilDead(t, pid)
	})
}

const slowScript = `
agents:
  assistant:
    - calls: [{name: delegate, args: {agent: historian, task: wait}}]
    - text: done
  historian:
    - {text: at last, delay: 10m}
`

// The first signal stops the run and the result is printed all the same.
func TestSignalsEndARunWithItsResult(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		signal syscall.Signal
		code   int
	}{{syscall.SIGINT, 130}, {syscall.SIGTERM, 143}} {
		t.Run(c.signal.String(), func(t *testing.T) {
			t.Parallel()
			s := newTestHome(t, map[string]string{"slow.yaml": slowScript})
			cmd := s.command("run", "-o", "json", "--run-id", "slow", "-m", "script/slow.yaml", "wait")
			var stdout bytes.Buffer
			cmd.Stdout = &stdout
			pipe, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			stderr := watchOutput(pipe)
			stderr.until(t, "root-1-0 historian")
			if err := cmd.Process.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			stderr.end()
			if code := exitOf(t, cmd.Wait()); code != c.code {
				t.Errorf("exit %d, want %d", code, c.code)
			}
			var r event.Result
			if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
				t.Fatalf("%v\n%s\n%s", err, stdout.String(), stderr)
			}
			if r.Subtype != "error_cancelled" || !r.Partial || r.Budget.Reserved != 0 || len(r.Agents) != 2 {
				t.Errorf("result: %+v", r)
			}
			for _, m := range r.Agents {
				if m.Phase != "done" {
					t.Errorf("%s is left as an orphan: %+v", m.ID, m)
				}
			}
			out, err := s.command("list").Output()
			if err != nil || !strings.Contains(string(out), "finished  canceled (tool aborted)") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// The second Ctrl-C does not wait; the run is there to be continued.
func TestTheSecondInterruptKills(t *testing.T) {
	t.Parallel()
	s := newTestHome(t, map[string]string{"slow.yaml": slowScript})
	cmd := s.command("run", "--run-id", "slow", "-m", "script/slow.yaml", "wait")
	pipe, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stderr := watchOutput(pipe)
	stderr.until(t, "root-1-0 historian")
	const second = "kills the calls in progress and exits at once; troupe run --resume slow then completes the cancel"
	for _, wait := range []string{"stopping at the next safe boundary, in 5s at the latest; a second Ctrl-C " + second, "exiting now, before the run has stopped: the second Ctrl-C " + second} {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		stderr.until(t, wait)
	}
	stderr.end()
	if code := exitOf(t, cmd.Wait()); code != 130 {
		t.Errorf("exit %d, want 130", code)
	}
	out, err := s.command("cancel", "--now", "slow").Output()
	if err != nil || !strings.Contains(string(out), "0 orphans") {
		t.Errorf("%v\n%s", err, out)
	}
}

// On a terminal the tree is redrawn in place, and stays when the run is over.
func TestTheTreeOnATerminal(t *testing.T) {
	t.Parallel()
	s := newTestHome(t, map[string]string{"slow.yaml": strings.Replace(slowScript, "10m", "3s", 1)})
	cmd := s.command("run", "-m", "script/slow.yaml", "wait")
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 90})
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	screen := watchOutput(terminal)
	screen.until(t, "└─")
	screen.until(t, "delegate historian: wait")
	text := screen.end() // the read fails when the process is gone
	if code := exitOf(t, cmd.Wait()); code != 0 {
		t.Fatalf("exit %d\n%s", code, text)
	}
	for _, want := range []string{"\x1b[3A", "\x1b[K", "\x1b[J", "2 agents", "tokens [", "\x1b[32m✓", "done\r\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%q", want, text)
		}
	}
	if last := text[strings.LastIndex(text, "\x1b[J"):]; !strings.Contains(last, "done") {
		t.Errorf("the answer does not stand below the tree: %q", last)
	}
}

// On a terminal a question is asked, and the answer lets the run go on.
func TestAQuestionOnATerminal(t *testing.T) {
	t.Parallel()
	s := newTestHome(t, map[string]string{"deploy.yaml": `
agents:
  coordinator:
    - calls: [{name: deploy}]
    - text: "deployed: {{last}}"
`})
	half := exec.Command("half-run", filepath.Join(s.home, "state/troupe"), "half", filepath.Join(s.home, "deploy.yaml"))
	if out, err := half.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := s.command("run", "--resume", "half")
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 90})
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	screen := watchOutput(terminal)
	screen.until(t, "y run it again")
	for _, step := range []struct{ typed, shown string }{
		{"?", "TEXT is its outcome: write what you know"},
		{"hm?\n", "too early, or not a single key"}, // a stray line is no outcome
		{"t", "its outcome is (Esc goes back):"},
		{"it is out\n", ""},
	} {
		<-time.After(answerGuard)
		if _, err := terminal.WriteString(step.typed); err != nil {
			t.Fatal(err)
		}
		if step.shown != "" {
			screen.until(t, step.shown)
		}
	}
	text := screen.end()
	if code := exitOf(t, cmd.Wait()); code != 0 || !strings.Contains(text, "deployed: reported by a person: it is out") {
		t.Errorf("exit %d\n%s", code, text)
	}
}

// On a terminal a deletion is asked about; whatever is not yes leaves the run.
func TestADeletionIsConfirmedOnATerminal(t *testing.T) {
	t.Parallel()
	s := newTestHome(t, map[string]string{"quick.yaml": "default: [{text: fine}]\n"})
	if out, err := s.command("run", "-q", "--run-id", "first", "-m", "script/quick.yaml", "hello").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, answer := range []struct {
		text, want string
		code       int
	}{{"\n", "not confirmed", 2}, {"no\n", "not confirmed", 2}, {"y\n", "run first is deleted", 0}} {
		cmd := s.command("delete", "first")
		terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 90})
		if err != nil {
			t.Fatal(err)
		}
		screen := watchOutput(terminal)
		screen.until(t, "delete the run first: it cannot be undone. y/N:")
		if _, err := terminal.WriteString(answer.text); err != nil {
			t.Fatal(err)
		}
		text := screen.end()
		if code := exitOf(t, cmd.Wait()); code != answer.code || !strings.Contains(text, answer.want) {
			t.Errorf("%q: exit %d\n%s", answer.text, code, text)
		}
		if err := terminal.Close(); err != nil {
			t.Error(err)
		}
	}
}

// An agent that asks twice in one reply is answered twice, one after the other (E4).
//
//behaviour:shows E4
func TestAnAgentAsksOnATerminal(t *testing.T) {
	t.Parallel()
	s := newTestHome(t, map[string]string{"asker.md": "---\nname: asker\ndescription: Asks.\n---\nAsk.\n", "ask.yaml": `
default:
  - calls: [{name: ask_human, args: {question: "Which one?"}}, {name: ask_human, args: {question: "How many?"}}]
  - text: "{{result.0}}, {{result.1}}"
`})
	cmd := s.command("run", "-m", "script/ask.yaml", "--agents", ".", "--agent", "asker", "buy")
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 90})
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	screen := watchOutput(terminal)
	for i, q := range [][2]string{{"Which one?", "B"}, {"How many?", "two"}} {
		screen.until(t, q[0]+"\r\n")
		screen.untilTimes(t, "approve, deny, skip, or text (? lists the answers):", i+1)
		if _, err := terminal.WriteString(q[1] + "\n"); err != nil {
			t.Fatal(err)
		}
	}
	text := screen.end()
	if code := exitOf(t, cmd.Wait()); code != 0 || !strings.Contains(text, "a person answered: B, a person answered: two") {
		t.Errorf("exit %d\n%s", code, text)
	}
}

// A call that needs an approval is put to the person at the terminal as what it would do, and one key decides: once, no,
// and always in this run, after which such calls are not asked about. A reason is a line after its key.
//
//behaviour:shows E3
func TestAnApprovalOnATerminal(t *testing.T) {
	t.Parallel()
	s := newTestHome(t, map[string]string{"hand.md": "---\nname: hand\ndescription: Works.\ntools: Bash, Write\n---\nWork.\n", "work/note.md": "old\n", "work.yaml": `
default:
  - calls: [{name: shell, args: {command: "touch one \u202e"}}, {name: shell, args: {command: touch two}}, {name: write_file, args: {path: note.md, content: "new\n"}}]
  - calls: [{name: write_file, args: {path: note.md, content: "newer\n"}}]
  - text: "{{last}}"
`})
	cmd := s.command("run", "-m", "script/work.yaml", "--dir", "work", "--agents", ".", "--agent", "hand", "work")
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 120})
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	screen := watchOutput(terminal)
	for i, q := range [][2]string{{"$ touch one \\u202e", "y"}, {"$ touch two", "r"}, {"+new", "a"}} {
		screen.until(t, q[0])
		screen.untilTimes(t, "t type the result", i+1)
		<-time.After(answerGuard)
		if _, err := terminal.WriteString(q[1]); err != nil {
			t.Fatal(err)
		}
		if q[1] == "r" {
			screen.until(t, "no, because")
			if _, err := terminal.WriteString("not that one\n"); err != nil {
				t.Fatal(err)
			}
		}
	}
	text := screen.end()
	if code := exitOf(t, cmd.Wait()); code != 0 || !strings.Contains(text, "-old") || !strings.Contains(text, "y (once)") || !strings.Contains(text, "a (always in this run)") {
		t.Errorf("exit %d\n%s", code, text)
	}
	for name, want := range map[string]string{"two": "", "note.md": "newer\n"} {
		if data, err := os.ReadFile(filepath.Join(s.home, "work", name)); string(data) != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q %v", name, data, err)
		}
	}
}

// What was typed before a question was on the screen does not answer it, nor does a key that comes with others, as in a
// paste, or right after the question.
func TestWhatIsTypedBeforeAQuestionIsNoAnswer(t *testing.T) {
	t.Parallel()
	s := newTestHome(t, map[string]string{"hand.md": "---\nname: hand\ndescription: Works.\ntools: Bash\n---\nWork.\n", "work/note.md": "", "work.yaml": `
default:
  - calls: [{name: shell, args: {command: touch one}}]
  - calls: [{name: shell, args: {command: touch two}}]
  - text: "{{last}}"
`})
	cmd := s.command("run", "-m", "script/work.yaml", "--dir", "work", "--agents", ".", "--agent", "hand", "work")
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 120})
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	screen := watchOutput(terminal)
	press := func(keys string) {
		t.Helper()
		if _, err := terminal.WriteString(keys); err != nil {
			t.Fatal(err)
		}
	}
	for i, question := range []string{"$ touch one", "$ touch two"} {
		press("yyy\ny\n")
		screen.until(t, question)
		screen.untilTimes(t, "t type the result", i+1)
		press("y")
		screen.untilTimes(t, "too early", 2*i+1)
		<-time.After(answerGuard)
		press("yes please\n")
		screen.untilTimes(t, "too early", 2*i+2)
		<-time.After(answerGuard)
		press("n\n")
		screen.untilTimes(t, "n (no)", i+1)
	}
	text := screen.end()
	if code := exitOf(t, cmd.Wait()); code != 0 {
		t.Errorf("exit %d\n%s", code, text)
	}
	for _, name := range []string{"one", "two"} {
		if _, err := os.Stat(filepath.Join(s.home, "work", name)); err == nil {
			t.Errorf("the call that touches %s ran\n%s", name, text)
		}
	}
}

// fmt runs once for each message of `nats sub --translate`: it must be there at once.
func BenchmarkFmt(b *testing.B) {
	published := `{"v":1,"id":"r.root#4.0","ts":"2026-01-02T03:04:05.678Z","run":"r","agent":"root","seq":4,"kind":"turn.started","turn":1,"data":{"reservation":1}}` + "\n"
	for b.Loop() {
		cmd := exec.Command("troupe", "fmt")
		cmd.Stdin = strings.NewReader(published)
		if out, err := cmd.Output(); err != nil || !strings.Contains(string(out), event.KindTurnStarted) {
			b.Fatalf("%v %s", err, out)
		}
	}
}
