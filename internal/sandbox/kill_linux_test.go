package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/troupe-run/troupe/internal/sandbox"
)

var kills = flag.Int("sandbox.kills", 6, "how many commands TestNothingSurvivesAKilledCommand kills")

// stubborn starts processes that do all they can to outlive their command: in
// sessions of their own, orphaned, deaf to signals, and multiplying. Each has the
// token in its arguments.
const stubborn = `trap '' TERM HUP INT
live() { trap '' TERM HUP INT; while :; do sleep 300.%[1]s; done; }
live & (live &) ; setsid sh -c "trap '' TERM HUP INT; sleep 300.%[1]s & sleep 300.%[1]s" &
(setsid nohup sh -c "trap '' TERM; (setsid sleep 300.%[1]s &); sleep 300.%[1]s" >/dev/null 2>&1 &)
echo up > up; wait; sleep 300.%[1]s`

// aliveProcesses are the processes of the machine with a token in their arguments.
func aliveProcesses(t *testing.T, token string) (found []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Error(err)
	}
	for _, f := range files {
		line, err := os.ReadFile(f)
		if err == nil && bytes.Contains(line, []byte(token)) {
			found = append(found, f+": "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

// awaitFile waits until a file is there.
func awaitFile(t *testing.T, file string) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); ; <-tick.C {
		if _, err := os.Stat(file); err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Error("the command did not come up")
			return
		}
	}
}

// TestNothingSurvivesAKilledCommand kills commands with stubborn families; 500
// of them with -sandbox.kills 500.
//
//behaviour:shows C4
func TestNothingSurvivesAKilledCommand(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"all", "without namespaces"} {
		t.Run(name, func(t *testing.T) {
			var survivors atomic.Int64
			var all sync.WaitGroup
			for worker := range workers {
				all.Go(func() {
					token := fmt.Sprintf("7%d7%d7%d", os.Getpid(), len(name), worker)
					for n := worker; n < *kills; n += workers {
						left := killStubborn(t, systems[name], token)
						survivors.Add(int64(len(left)))
						for _, l := range left {
							t.Error("survived: ", l)
						}
					}
				})
			}
			all.Wait()
			t.Logf("%d killed commands, %d surviving processes", *kills, survivors.Load())
		})
	}
}

// workers are the commands that are killed at once.
const workers = 4

// killStubborn starts a stubborn command, kills it, and returns what is left of it.
func killStubborn(t *testing.T, less sandbox.Less, token string) []string {
	why := errors.New("enough")
	b := &testBox{t: t, less: less, dir: t.TempDir()}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	go func() {
		awaitFile(t, filepath.Join(b.dir, "up"))
		cancel(why)
	}()
	if _, err := b.runIn(ctx, fmt.Sprintf(stubborn, token)); !errors.Is(err, why) {
		t.Error(err)
	}
	return aliveProcesses(t, token)
}

func TestEndedCommandLeavesNoBackgroundProcess(t *testing.T) {
	eachBox(t, func(t *testing.T, b *testBox) {
		token := fmt.Sprintf("8%d8%d", os.Getpid(), len(t.Name()))
		out := b.runCommand("(%s) >/dev/null 2>&1 & while [ ! -s up ]; do :; done; echo done", fmt.Sprintf(stubborn, token))
		if left := aliveProcesses(t, token); string(out.Stdout) != "done\n" || out.Exit != 0 || len(left) > 0 {
			t.Errorf("%d %q %v", out.Exit, out.Stdout, left)
		}
	})
}

// bombTime is how long a fork bomb goes on.
const bombTime = 2 * time.Second

// TestAForkBombIsBounded counts first, then explodes.
//
//behaviour:shows C4
func TestAForkBombIsBounded(t *testing.T) {
	b := &testBox{t: t, dir: t.TempDir()}
	b.spec.Processes = 400
	bounded := b.isEnforced("processes")
	if bounded {
		out := b.runCommand("i=0; while [ $i -lt 600 ]; do sleep 300 & i=$((i+1)); echo $i > n; done; echo made")
		if !strings.Contains(string(out.Stdout), "fork") || strings.Contains(string(out.Stdout), "made") {
			t.Errorf("%d: %s", out.Exit, out.Stdout)
		}
		n, err := os.ReadFile(filepath.Join(b.dir, "n"))
		t.Logf("%s processes were made, and no more: %v", bytes.TrimSpace(n), err)
	}
	token := fmt.Sprintf("9%d9", os.Getpid())
	ctx, cancel := context.WithTimeout(t.Context(), bombTime)
	defer cancel()
	// It ends by the time, or because nothing more can be forked, not even by its helper.
	_, err := b.runIn(ctx, fmt.Sprintf(`bomb() { : %[1]s; bomb | bomb & }; bomb; exec sleep 300.%[1]s`, token))
	if left := aliveProcesses(t, token); len(left) > 0 {
		t.Errorf("%v %v", err, left)
	}
}

// TestWhenTheNodeIsKilledItsCommandsEnd kills what waits for a command.
func TestWhenTheNodeIsKilledItsCommandsEnd(t *testing.T) {
	dir, token := t.TempDir(), fmt.Sprintf("6%d6", os.Getpid())
	if err := os.WriteFile(filepath.Join(dir, "run"), fmt.Appendf(nil, "#!/bin/sh\n"+stubborn, token), 0o755); err != nil {
		t.Fatal(err)
	}
	node := exec.Command(os.Args[0])
	node.Env = append(os.Environ(), probeVar+"=node "+dir+" ./run")
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	awaitFile(t, filepath.Join(dir, "up"))
	if err := node.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = node.Wait()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(time.Minute)
	for len(aliveProcesses(t, token)) > 0 && time.Now().Before(deadline) {
		<-tick.C
	}
	if left := aliveProcesses(t, token); len(left) > 0 {
		t.Error(left)
	}
}
