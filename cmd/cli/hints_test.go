package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// printedCommand matches a command line that a hint quotes up to the words behind it.
func printedCommand(t *testing.T, text, before, behind string) string {
	t.Helper()
	m := regexp.MustCompile(regexp.QuoteMeta(before) + `(troupe .*?)` + regexp.QuoteMeta(behind)).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no command between %q and %q in:\n%s", before, behind, text)
	}
	return m[1]
}

// pasted is a command line as a person pastes it into a shell of another directory.
func (s testHome) pasted(line string) *exec.Cmd {
	cmd := s.command()
	paste := exec.Command("sh", "-c", line)
	paste.Dir, paste.Env, paste.WaitDelay = s.t.TempDir(), cmd.Env, cmd.WaitDelay
	return paste
}

// The command with which a run that a limit has ended is continued works when it is pasted elsewhere: it has the
// directory, the agents and the model of the run, and its state directory.
func TestPastedForkContinuesARun(t *testing.T) {
	t.Parallel()
	s := newTestHome(t, map[string]string{
		"my src/a.txt":     "one\n",
		"team/sub/boss.md": "---\nname: boss\ndescription: Leads.\n---\nYou lead.\n",
		"boss.yaml":        "agents:\n  boss:\n    - calls: [{name: read_file, args: {path: a.txt}}]\n    - text: \"I go on\"\n    - text: \"I go on\"\n",
	})
	run := s.command("run", "--store-dir", "kept", "--dir", "my src", "--agents", "team", "--agent", "boss", "-m", "script/boss.yaml", "--max-turns", "1", "go")
	text, err := run.CombinedOutput()
	if code := exitOf(t, err); code != 4 {
		t.Fatalf("exit %d: %s", code, text)
	}
	line := printedCommand(t, string(text), "sets the limit, ", " continues from its history")
	if out, err := s.pasted(line).CombinedOutput(); err != nil || !strings.Contains(string(out), "I go on") {
		t.Errorf("%s: %v: %s", line, err, out)
	}
	if _, err := os.Stat(s.home + "/kept"); err != nil {
		t.Error(err)
	}
}
