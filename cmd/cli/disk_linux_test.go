package main

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/troupe-run/troupe/agent/event"
)

// fullFor is how long a disk is full in a test: longer than an append waits.
const fullFor = 6 * time.Second

// runOnFullDisk starts a run of several turns in a process of its own, and then lets
// no file of that process grow: its disk takes no more. It needs no privilege.
func runOnFullDisk(t *testing.T, flags ...string) (cmd *exec.Cmd, stdout, stderr *watchedOutput) {
	t.Helper()
	script, files := "default:\n", map[string]string{}
	for i := range 8 {
		name := fmt.Sprintf("file%d", i)
		files[name] = name + " has this"
		script += "  - {calls: [{name: read_file, args: {path: " + name + "}}], delay: 300ms}\n"
	}
	files["turns.yaml"] = script + "  - text: at last\n"
	s := newTestHome(t, files)
	cmd = s.command(append([]string{"run", "-m", "script/turns.yaml", "--dir", ".", "--run-id", "full"}, append(flags, "go")...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended long ago, or the test failed
	stdout, stderr = watchOutput(out), watchOutput(pipe)
	stderr.until(t, event.KindAgentSpawned)
	checkGrowth(t, cmd, 1<<10)
	stderr.until(t, "takes no larger files")
	return cmd, stdout, stderr
}

// checkGrowth limits the size of the files of a process.
func checkGrowth(t *testing.T, cmd *exec.Cmd, most uint64) {
	t.Helper()
	var l unix.Rlimit
	err := unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_FSIZE, nil, &l)
	if err == nil {
		l.Cur = min(most, l.Max)
		err = unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_FSIZE, &l, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestRunSurvivesAFullDisk: the run waits while its disk is full, says so, and goes on
// by itself when there is room.
func TestRunSurvivesAFullDisk(t *testing.T) {
	t.Parallel()
	cmd, stdout, stderr := runOnFullDisk(t)
	<-time.After(fullFor)
	checkGrowth(t, cmd, 1<<40)
	stderr.until(t, "the run continues")
	text, log := stdout.end(), stderr.end()
	if code := exitOf(t, cmd.Wait()); code != 0 || !strings.Contains(text, "at last") {
		t.Errorf("exit %d: %s\n%s", code, text, log)
	}
}

// TestRunOnAFullDiskEndsWithTheReason: without room the command gives up in time, says
// why, and the run can be resumed. A signal ends it as well.
func TestRunOnAFullDiskEndsWithTheReason(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flags  []string
		signal syscall.Signal
		exit   int
	}{
		"patience": {flags: []string{"--log-patience", "2s"}, exit: exitNoNode},
		"Ctrl-C":   {signal: syscall.SIGINT, exit: exitInterrupted},
		"SIGTERM":  {signal: syscall.SIGTERM, exit: exitTerminated},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd, stdout, stderr := runOnFullDisk(t, c.flags...)
			if c.signal != 0 {
				if err := cmd.Process.Signal(c.signal); err != nil {
					t.Fatal(err)
				}
			}
			stdout.end()
			log := stderr.end()
			if code := exitOf(t, cmd.Wait()); code != c.exit || !strings.Contains(log, "error: ") || !strings.Contains(log, "--resume full") {
				t.Errorf("exit %d, want %d\n%s", code, c.exit, log)
			}
			again := exec.Command(cmd.Path, "run", "--resume", "full")
			again.Dir, again.Env = cmd.Dir, cmd.Env
			if out, err := again.CombinedOutput(); err != nil || !strings.Contains(string(out), "at last") {
				t.Errorf("resumed: %v\n%s", err, out)
			}
		})
	}
}
