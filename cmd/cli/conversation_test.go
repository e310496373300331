package main

import (
	"encoding/json"
	"io"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
)

// talk is a script whose answer tells how many replies the history holds, and what the user said last.
const talk = `
default:
  - {text: "one: {{user}}"}
  - {text: "two: {{user}}"}
  - {text: "three: {{user}}"}
  - {text: "four: {{user}}"}
`

// outputOf runs a command to its end.
func (s testHome) outputOf(args ...string) (out string, code int) {
	s.t.Helper()
	text, err := s.command(args...).Output()
	return string(text), exitOf(s.t, err)
}

// errorOf runs a command to its end, for its stderr.
func (s testHome) errorOf(args ...string) (stderr string, code int) {
	s.t.Helper()
	cmd := s.command(args...)
	var text strings.Builder
	cmd.Stderr = &text
	code = exitOf(s.t, cmd.Run())
	return text.String(), code
}

// A message that is posted while another runs waits for it and goes on from it, and so does one of a later process. A
// conversation is listed, shown and deleted.
//
//behaviour:shows K1
func TestAConversationOverProcesses(t *testing.T) {
	t.Parallel()
	s := newTestHome(t, map[string]string{"slow.yaml": strings.Replace(talk, `"one: {{user}}"`, `"one: {{user}}", delay: 2s`, 1), "talk.yaml": talk})
	first := s.command("run", "-m", "script/slow.yaml", "--conversation", "plans", "first")
	stderr, err := first.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stdout strings.Builder
	first.Stdout = &stdout
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	progress := watchOutput(stderr)
	progress.until(t, event.KindAgentSpawned)
	out, code := s.outputOf("run", "-q", "-m", "script/talk.yaml", "--conversation", "plans", "second")
	if code != 0 || out != "two: second\n" {
		t.Errorf("the second message: %d, %q", code, out)
	}
	if err := first.Wait(); err != nil || stdout.String() != "one: first\n" {
		t.Errorf("the first message: %v, %q", err, stdout.String())
	}
	if out, code = s.outputOf("run", "-q", "-m", "script/talk.yaml", "--conversation", "last", "third"); code != 0 || out != "three: third\n" {
		t.Errorf("the third message: %d, %q", code, out)
	}
	var list []client.ConversationInfo
	out, _ = s.outputOf("conversations", "list", "-o", "json")
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != 1 || list[0].Conversation != "plans" || list[0].Count != 3 {
		t.Errorf("the list: %v, %s", err, out)
	}
	if out, _ = s.outputOf("conversations", "show", "plans"); strings.Count(out, "completed") != 3 || !strings.Contains(out, "second") {
		t.Errorf("it is shown as %s", out)
	}
	if out, code = s.outputOf("conversations", "delete", "--yes", "plans"); code != 0 || !strings.Contains(out, "3 runs") {
		t.Errorf("it was not deleted: %d, %s", code, out)
	}
	if out, code = s.outputOf("conversations", "show", "plans"); code != 2 {
		t.Errorf("a deleted conversation is shown: %d, %s", code, out)
	}
	if out, _ = s.outputOf("list", "-o", "json"); strings.TrimSpace(out) != "[]" {
		t.Errorf("its runs are left: %s", out)
	}
}

// A process that is killed in the middle of a conversation loses nothing: the next message continues the run that it left,
// and then runs itself.
//
//behaviour:shows K1
func TestAKilledConversationContinues(t *testing.T) {
	t.Parallel()
	s := newTestHome(t, map[string]string{"slow.yaml": strings.Replace(talk, `"one: {{user}}"`, `"one: {{user}}", delay: 2s`, 1), "talk.yaml": talk})
	first := s.command("run", "-m", "script/slow.yaml", "--conversation", "plans", "--run-id", "first", "first")
	stderr, err := first.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	watchOutput(stderr).until(t, event.KindAgentSpawned)
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait() // it was killed
	if out, code := s.outputOf("run", "-q", "-m", "script/talk.yaml", "--conversation", "plans", "second"); code != 0 || out != "two: second\n" {
		t.Errorf("the message after the kill: %d, %q", code, out)
	}
	if out, code := s.outputOf("result", "first"); code != 0 || out != "one: first\n" {
		t.Errorf("the run that was killed: %d, %q", code, out)
	}
}

// chat reads messages from a pipe, and goes on in another process.
//
//behaviour:shows K1
func TestAPipedChat(t *testing.T) {
	t.Parallel()
	s := newTestHome(t, map[string]string{"talk.yaml": talk})
	chat := func(input string) (string, int) {
		t.Helper()
		cmd := s.command("chat", "-q", "-m", "script/talk.yaml", "--conversation", "c")
		cmd.Stdin = strings.NewReader(input)
		out, err := cmd.Output()
		return string(out), exitOf(t, err)
	}
	if out, code := chat("/quit\nnot this\n"); code != 0 || out != "" {
		t.Errorf("exit %d:\n%s", code, out)
	}
	if out, code := chat("hello\n\nand now\n/exit\nnot this\n"); code != 0 || out != "one: hello\ntwo: and now\n" {
		t.Errorf("the chat: %d, %q", code, out)
	}
	if out, code := chat("back again"); code != 0 || out != "three: back again\n" {
		t.Errorf("the next day: %d, %q", code, out)
	}
}

// A chat prints the model and the notes above its first message, and above each later one only the run.
func TestAChatRepeatsNoHeader(t *testing.T) {
	t.Parallel()
	s := newTestHome(t, map[string]string{"talk.yaml": talk})
	cmd := s.command("chat", "-m", "script/talk.yaml", "--conversation", "c")
	cmd.Stdin = strings.NewReader("hello\nand now\nand then\n")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if out, err := cmd.Output(); err != nil || string(out) != "one: hello\ntwo: and now\nthree: and then\n" {
		t.Fatalf("%v %q\n%s", err, out, stderr.String())
	}
	for prefix, want := range map[string]int{"conversation c": 1, "model  ": 1, "run    ": 3, "nats   ": 0, "note   it continues": 0} {
		n := 0
		for line := range strings.Lines(stderr.String()) {
			if strings.HasPrefix(line, prefix) {
				n++
			}
		}
		if n != want {
			t.Errorf("%d lines begin with %q, want %d:\n%s", n, prefix, want, stderr.String())
		}
	}
	if said, code := s.errorOf("run", "-m", "script/talk.yaml", "--conversation", "c", "at last"); code != 0 || !strings.Contains(said, "note   it continues the conversation c after ") {
		t.Errorf("%d %s", code, said)
	}
}

// The age of a conversation whose chat has ended counts from the end of its last run, however often it is shown.
//
//behaviour:shows K1
func TestTheAgeOfAConversationIsThatOfItsEnd(t *testing.T) {
	t.Parallel()
	s := newTestHome(t, map[string]string{"talk.yaml": talk})
	chat := s.command("chat", "-q", "-m", "script/talk.yaml", "--conversation", "c")
	chat.Stdin = strings.NewReader("hello\n")
	if out, err := chat.Output(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	first, _ := s.outputOf("conversations", "show", "c", "-o", "json")
	if second, code := s.outputOf("conversations", "show", "c", "-o", "json"); code != 0 || second != first {
		t.Errorf("shown again it is another: %d\n%s\n%s", code, first, second)
	}
}

// startChat begins a chat whose messages a test writes; end closes the pipe and waits for the chat to end.
func (s testHome) startChat(args ...string) (stdin io.Writer, answers *watchedOutput, end func() (out string, code int)) {
	s.t.Helper()
	cmd := s.command(append([]string{"chat", "-q", "-m", "script/talk.yaml"}, args...)...)
	in, err := cmd.StdinPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended, unless the test failed
	answers = watchOutput(out)
	return in, answers, func() (string, int) {
		s.t.Helper()
		if err := in.Close(); err != nil {
			s.t.Fatal(err)
		}
		text := answers.end()
		return text, exitOf(s.t, cmd.Wait())
	}
}

// A program that writes to a chat through a pipe, and reads each answer before it writes on, gets one for each line.
func TestAChatLeavesLaterLinesInThePipe(t *testing.T) {
	t.Parallel()
	s := newTestHome(t, map[string]string{"talk.yaml": talk})
	stdin, answers, end := s.startChat("--conversation", "c")
	for _, talk := range []struct{ line, answer string }{{"line1", "one: line1\n"}, {"-", "two: -\n"}, {"line3", "three: line3\n"}} {
		if _, err := io.WriteString(stdin, talk.line+"\n"); err != nil {
			t.Fatal(err)
		}
		answers.until(t, talk.answer)
	}
	if got, code := end(); code != 0 || got != "one: line1\ntwo: -\nthree: line3\n" {
		t.Errorf("the chat: %d, %q", code, got)
	}
}

// last is the newest conversation of the directory when a chat begins: runs of other directories, and those that begin
// during the chat, do not change it.
func TestTheLastConversationIsThatOfTheDirectory(t *testing.T) {
	t.Parallel()
	s := newTestHome(t, map[string]string{"talk.yaml": talk, "a/x": "", "b/x": "", "c/x": ""})
	say := func(dir, conversation, text string) (string, int) {
		t.Helper()
		return s.outputOf("run", "-q", "-m", "script/talk.yaml", "--dir", dir, "--conversation", conversation, text)
	}
	if out, code := say("a", "last", "hi"); code != exitUsage {
		t.Errorf("the last of none: %d, %q", code, out)
	}
	for _, dir := range []string{"a", "b"} {
		if out, code := say(dir, "of-"+dir, "hi"); code != 0 || out != "one: hi\n" {
			t.Fatalf("%d, %q", code, out)
		}
	}
	if out, code := say("a", "last", "again"); code != 0 || out != "two: again\n" {
		t.Errorf("the last of a: %d, %q", code, out)
	}
	var list []client.ConversationInfo
	out, _ := s.outputOf("conversations", "list", "-o", "json")
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatal(err)
	}
	messages := map[string]int{}
	for _, c := range list {
		messages[c.Conversation] = c.Count
	}
	if !maps.Equal(messages, map[string]int{"of-a": 2, "of-b": 1}) {
		t.Errorf("the list: %s", out)
	}
	for _, args := range [][]string{{"--dir", "c"}, {}} {
		stderr, code := s.errorOf(append([]string{"run", "-m", "script/talk.yaml", "--conversation", "last", "hi"}, args...)...)
		if code != exitUsage || !strings.Contains(stderr, "there is no run") || !strings.Contains(stderr, filepath.Join(s.home, "a")) {
			t.Errorf("%v is refused with %d: %s", args, code, stderr)
		}
	}

	stdin, answers, end := s.startChat("--dir", "b", "--conversation", "last")
	if _, err := io.WriteString(stdin, "first\n"); err != nil {
		t.Fatal(err)
	}
	answers.until(t, "two: first\n")
	if out, code := say("b", "other", "meanwhile"); code != 0 {
		t.Fatalf("%d, %q", code, out)
	}
	if _, err := io.WriteString(stdin, "second\n"); err != nil {
		t.Fatal(err)
	}
	answers.until(t, "three: second\n")
	if got, code := end(); code != 0 {
		t.Errorf("the chat: %d, %q", code, got)
	}
}

// An empty id is a mistake in a script, not a wish for no conversation; the longest id is what the documents say.
func TestTheIDOfAConversationIsChecked(t *testing.T) {
	t.Parallel()
	s := newTestHome(t, map[string]string{"talk.yaml": talk})
	for _, name := range []string{"run", "start", "chat"} {
		args := []string{name, "-m", "script/talk.yaml", "--conversation=", "hi"}
		if name == "chat" {
			args = args[:len(args)-1]
		}
		if stderr, code := s.errorOf(args...); code != exitUsage || !strings.Contains(stderr, "--conversation is empty") || !strings.Contains(stderr, "hint: ") {
			t.Errorf("%s: %d, %s", name, code, stderr)
		}
	}
	const longest = 58
	id := strings.Repeat("c", longest)
	for i, want := range []string{"one: hi\n", "two: hi\n"} {
		if out, code := s.outputOf("run", "-q", "-m", "script/talk.yaml", "--conversation", id, "hi"); code != 0 || out != want {
			t.Errorf("message %d of the longest id: %d, %q", i, code, out)
		}
	}
	if stderr, code := s.errorOf("run", "-m", "script/talk.yaml", "--conversation", id+"c", "hi"); code != exitUsage || !strings.Contains(stderr, "at most 58 of") {
		t.Errorf("a longer one: %d, %s", code, stderr)
	}
}

// A message that waits is dropped or moved; one that cannot begin within its limits is reported, and the next one starts.
//
//behaviour:shows E5
func TestALaneIsChangedAndGoesOn(t *testing.T) {
	t.Parallel()
	s := newTestHome(t, map[string]string{"slow.yaml": strings.Replace(talk, `"one: {{user}}"`, `"one: {{user}}", delay: 5m`, 1), "talk.yaml": talk})
	first := s.command("run", "-m", "script/slow.yaml", "--conversation", "plans", "--run-id", "first", "first")
	stderr, err := first.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	progress := watchOutput(stderr)
	progress.until(t, event.KindAgentSpawned)
	post := func(run string, more ...string) {
		t.Helper()
		args := append([]string{"start", "-q", "-m", "script/talk.yaml", "--conversation", "plans", "--run-id", run}, more...)
		if out, code := s.outputOf(append(args, run)...); code != 0 {
			t.Fatalf("%s was not posted: %d, %s", run, code, out)
		}
	}
	if out, code := s.outputOf("run", "-q", "-m", "script/talk.yaml", "--conversation", "other", "hi"); code != 0 || out != "one: hi\n" {
		t.Errorf("another conversation: %d, %q", code, out)
	}
	if out, _ := s.outputOf("lanes"); !strings.Contains(out, "active") || strings.Contains(out, "other") {
		t.Errorf("it did not run in parallel: %s", out)
	}
	post("second")
	post("poor", "--max-tokens", "300")
	post("third")
	if out, code := s.outputOf("lanes", "plans", "move", "third", "--before", "second"); code != 0 || strings.Index(out, "third") > strings.Index(out, "second") {
		t.Errorf("the lane after the move: %d, %s", code, out)
	}
	if out, code := s.outputOf("lanes", "plans", "drop", "second"); code != 0 || !strings.Contains(out, "dropped") && !strings.Contains(out, "canceled") {
		t.Errorf("the lane after the drop: %d, %s", code, out)
	}
	if out, code := s.outputOf("cancel", "--now", "first"); code != 0 { // it holds the lane until here
		t.Errorf("the cancel of the first: %d, %s", code, out)
	}
	if out, code := s.outputOf("run", "-q", "-m", "script/talk.yaml", "--conversation", "plans", "last"); code != 0 || out != "two: last\n" {
		t.Errorf("the last message: %d, %q", code, out)
	}
	if code := exitOf(t, first.Wait()); code != 130 {
		t.Errorf("the first, canceled, exits %d", code)
	}
	for run, want := range map[string]int{"third": 0, "poor": 3, "second": 130} {
		if out, code := s.outputOf("result", run); code != want {
			t.Errorf("%s ended with %d, want %d: %s", run, code, want, out)
		}
	}
	if out, code := s.outputOf("events", "poor", "-o", "jsonl"); code != 0 || !strings.Contains(out, `"lane.failed"`) {
		t.Errorf("the failure to start is no event: %d, %s", code, out)
	}
}

// A lane is no run: no verb of runs reads, cancels or deletes it.
func TestALaneIsNoRun(t *testing.T) {
	t.Parallel()
	s := newTestHome(t, map[string]string{"talk.yaml": talk})
	if out, code := s.outputOf("run", "-q", "-m", "script/talk.yaml", "--conversation", "plans", "first"); code != 0 {
		t.Fatalf("%d %s", code, out)
	}
	for _, args := range [][]string{{"delete", "--yes", "lane-plans"}, {"cancel", "lane-plans"}, {"result", "lane-plans"}, {"transcript", "lane-plans"},
		{"steer", "lane-plans", "hello"}, {"run", "-m", "script/talk.yaml", "--run-id", "lane-plans", "mine"}} {
		if out, err := s.command(args...).CombinedOutput(); exitOf(t, err) != 2 || strings.Contains(string(out), "is deleted") {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
	if out, code := s.outputOf("run", "-q", "-m", "script/talk.yaml", "--conversation", "plans", "second"); code != 0 || out != "two: second\n" {
		t.Errorf("the conversation after that: %d, %q", code, out)
	}
}
