//go:build unix

package process

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

var (
	kills = flag.Int("proc.kills", 5, "how many nodes TestAttackDaemonOutlivesNoKilledNode kills")
	looks = flag.Int("proc.looks", 50, "how many programs TestAttackProgramHasItsInputAtItsStart starts")
)

// daemon is a script whose processes leave group, session and parent, and ignore signals. Each has the token in
// its arguments; one end of a pipe is up when all are.
const daemon = `trap '' TERM HUP; (setsid sh -c "trap '' TERM HUP; (setsid sleep 300.%[1]s &) ; sleep 300.%[1]s" >/dev/null 2>&1 &); setsid sleep 300.%[1]s & while [ $(ps axo args | grep -c '^sleep 300.%[1]s') -lt 3 ]; do sleep 0.01; done; echo up; `

// processesWithToken are the processes of the machine with a token in their arguments.
func processesWithToken(t *testing.T, token string) (found []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Error(err)
	}
	for _, f := range files {
		if line, err := os.ReadFile(f); err == nil && bytes.Contains(line, []byte("300."+token)) {
			found = append(found, f+": "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

// nodeVar makes this test binary run a command as a node does, until it is killed.
const nodeVar = "PROC_TEST_NODE_OF"

func runNode(script string) {
	_, err := Run(context.Background(), Spec{Argv: shellArgv(script), Env: []string{"PATH=" + os.Getenv("PATH")}})
	fmt.Println(err)
}

// TestAttackDaemonOutlivesNoKilledNode kills nodes whose tools have left everything that can be left.
func TestAttackDaemonOutlivesNoKilledNode(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // elsewhere a program that leaves its group is not found: docs/sandbox.md
	}
	survivors := 0
	for n := range *kills {
		token := fmt.Sprintf("5%d5%d", os.Getpid(), n)
		up := filepath.Join(t.TempDir(), "up")
		cmd := exec.Command(os.Args[0])
		cmd.Env = []string{nodeVar + "=" + fmt.Sprintf(daemon, token) + "echo up >" + up + "; sleep 300." + token, "PATH=" + os.Getenv("PATH")}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		waitUntil(t, func() bool { _, err := os.Stat(up); return err == nil })
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		waitUntil(t, func() bool { return len(processesWithToken(t, token)) == 0 })
		survivors += len(processesWithToken(t, token))
	}
	t.Logf("%d killed nodes, %d surviving processes", *kills, survivors)
}

// waitUntil looks again and again, for as long as a loaded machine may need.
func waitUntil(t *testing.T, done func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); !done(); <-tick.C {
		if time.Now().After(deadline) {
			t.Error("it did not come about")
			return
		}
	}
}

// TestAttackDaemonOutlivesNoCall ends calls by themselves and by their context, and stops a program that goes on.
func TestAttackDaemonOutlivesNoCall(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		return // see above
	}
	env := []string{"PATH=" + os.Getenv("PATH")}
	token := fmt.Sprintf("4%d4", os.Getpid())
	out, err := Run(t.Context(), Spec{Argv: shellArgv(fmt.Sprintf(daemon, token) + "exit 7"), Env: env})
	if left := processesWithToken(t, token); err != nil || out.Exit != 7 || string(out.Stdout) != "up\n" || len(left) > 0 {
		t.Errorf("%d %q %v: %v", out.Exit, out.Stdout, err, left)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running ProgramCounter
	up := filepath.Join(t.TempDir(), "up")
	go func() {
		waitUntil(t, func() bool { _, err := os.Stat(up); return err == nil })
		if running.Wait(time.Nanosecond) {
			t.Error("a program runs, and is not counted")
		}
		cancel()
	}()
	_, err = Run(running.CountIn(ctx), Spec{Argv: shellArgv(fmt.Sprintf(daemon, token) + "echo >" + up + "; sleep 300." + token), Env: env})
	if left := processesWithToken(t, token); err == nil || len(left) > 0 || !running.Wait(time.Minute) {
		t.Errorf("%v: %v", err, left)
	}
	c, err := Start(Spec{Argv: shellArgv(fmt.Sprintf(daemon, token) + "sleep 300." + token), Env: env})
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(c.Stdout).ReadString('\n'); err != nil || line != "up\n" {
		t.Errorf("%q %v", line, err)
	}
	c.Stop()
	if left := processesWithToken(t, token); len(left) > 0 {
		t.Error(left)
	}
}

// runner is a script that leaves its process group and continues in another process, and another, each of
// which ends.
const runner = `f() { (f & ) & }; : 300.%s; f`

// chases is how many programs TestAttackProcessThatForksAndEndsIsCaught ends.
const chases = 20

// chaseTime is how long all of it may take.
const chaseTime = 20 * time.Second

// TestAttackProcessThatForksAndEndsIsCaught: a process that forks and ends is not the one that was found when it is
// killed, and its child may be missing in the list that was read meanwhile.
func TestAttackProcessThatForksAndEndsIsCaught(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		return // see above
	}
	escaped := 0
	ctx, cancel := context.WithTimeout(t.Context(), chaseTime)
	defer cancel()
	for n := range chases {
		token := fmt.Sprintf("3%d3%d", os.Getpid(), n)
		out, err := Run(ctx, Spec{Argv: shellArgv("setsid sh -c '" + fmt.Sprintf(runner, token) + "' >/dev/null 2>&1 & sleep 0.05; exit 7"), Env: []string{"PATH=" + os.Getenv("PATH")}})
		if err != nil || out.Exit != 7 {
			t.Errorf("%d %v", out.Exit, err)
		}
		if left := processesWithToken(t, token); len(left) > 0 {
			escaped++
			t.Error(left)
		}
	}
	t.Logf("%d programs, %d escaped", chases, escaped)
}

// lookVar makes this test binary read its stdin once without waiting.
const lookVar = "PROC_TEST_LOOK"

// TestAttackProgramHasItsInputAtItsStart: input that comes after the program has begun is no input for some.
func TestAttackProgramHasItsInputAtItsStart(t *testing.T) {
	missed := 0
	for n := range *looks {
		want := strings.Repeat("x", 1+n*997%200_000)
		out, err := Run(t.Context(), Spec{Argv: []string{os.Args[0]}, Env: []string{lookVar + "=1"}, Stdin: []byte(want), StdoutMax: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		if string(out.Stdout) != want {
			missed++
			t.Errorf("%d of %d bytes", len(out.Stdout), len(want))
		}
	}
	t.Logf("%d programs, %d of them without all of their input", *looks, missed)
}

// TestAttackProgramInheritsNoDescriptor opens a descriptor without the close-on-exec flag.
func TestAttackProgramInheritsNoDescriptor(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // the list of descriptors is read from /proc
	}
	open := openInheritable(t)
	out, err := Run(t.Context(), Spec{Argv: shellArgv("for f in /proc/self/fd/*; do echo ${f##*/}; done"), Env: []string{"PATH=" + os.Getenv("PATH")}})
	if err != nil || strings.Contains("\n"+string(out.Stdout), fmt.Sprintf("\n%d\n", open)) {
		t.Errorf("%v: %s", err, out.Stdout)
	}
}
