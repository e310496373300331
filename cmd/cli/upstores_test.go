package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/client"
)

// The nodes of `troupe up` keep logs in streams, and `troupe run` alone keeps them in files. Neither reads the logs of the
// other: a command then says where they are. Such a run has not lost its logs, and nothing ends it.
func TestRunsOfUpAndOfTroupeRunKeepApart(t *testing.T) {
	t.Parallel()
	s := newTestHome(t, map[string]string{
		"work/note.md":  "x",
		"work/say.yaml": "repeat: true\ndefault:\n  - text: the answer\n",
		"work/ask.yaml": "repeat: true\ndefault:\n  - calls: [{name: shell, args: {command: 'rm note.md'}}]\n  - text: '[done] {{last}}'\n",
	})
	alone, asking, ofUp := client.NewID(), client.NewID(), client.NewID()
	begin := func(id, script string, want int) {
		t.Helper()
		if text, code := s.errorOf("run", "-q", "--dir", "work", "--run-id", id, "-m", "script/work/"+script, "p"); code != want {
			t.Fatalf("exit %d\n%s", code, text)
		}
	}
	expect := func(hint string, commands ...[]string) {
		t.Helper()
		for _, args := range commands {
			text, code := s.errorOf(args...)
			if code == 0 || !strings.Contains(text, "the logs of "+args[len(args)-1]+" are ") || !strings.Contains(text, hint) {
				t.Errorf("%v: exit %d\n%s", args, code, text)
			}
		}
	}
	begin(alone, "say.yaml", 0)
	begin(asking, "ask.yaml", 5)
	end, started := s.startUp("work")
	for _, words := range []string{"questions of 1 run of `troupe run` wait in this state directory, and these nodes do not read them: stop troupe up, then troupe questions shows them\n"} {
		if !strings.Contains(started.String(), words) {
			t.Errorf("no %q in %s", words, started)
		}
	}
	if strings.Contains(started.String(), "unfinished run") {
		t.Errorf("a run that waits is not to be resumed: %s", started)
	}
	begin(ofUp, "say.yaml", 0)
	expect("stop `troupe up`", []string{"result", alone}, []string{"tree", alone}, []string{"cancel", asking}, []string{"delete", "--yes", asking}, []string{"run", "--resume", asking})
	if out, code := s.outputOf("list"); code != 0 || !strings.Contains(out, "interrupted") || strings.Count(out, "finished") != 2 {
		t.Errorf("exit %d\n%s", code, out)
	}
	end()
	if text, _ := s.errorOf("list"); !strings.Contains(text, "no process works on") == strings.Contains(text, "--resume") {
		t.Errorf("list suggests a command that fails: %s", text)
	}
	expect("start `troupe up`", []string{"result", ofUp}, []string{"verify", ofUp}, []string{"transcript", ofUp}, []string{"run", "--resume", ofUp})
	if out, code := s.outputOf("result", alone); code != 0 || !strings.Contains(out, "the answer") {
		t.Errorf("exit %d\n%s", code, out)
	}
	if out, _ := s.outputOf("list"); !strings.Contains(out, "parked") || strings.Contains(out, "log_damaged") {
		t.Error(out)
	}
}

// startUp starts `troupe up` with one node for a directory. end stops it.
func (s testHome) startUp(root string) (end func(), out *watchedOutput) {
	s.t.Helper()
	bin, err := exec.LookPath("upnode")
	if err != nil {
		s.t.Fatal(err)
	}
	up := s.command("up", "--nodes", "1", "--lazy", "--node-binary", bin, "--root", filepath.Join(s.home, root))
	stderr, err := up.StderrPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := up.Start(); err != nil {
		s.t.Fatal(err)
	}
	end = func() {
		_ = up.Process.Signal(os.Interrupt) // it may have ended
		_ = up.Wait()
	}
	s.t.Cleanup(end)
	out = watchOutput(stderr)
	out.until(s.t, "node-1 | ready ")
	s.waitForNodes(1)
	return end, out
}
