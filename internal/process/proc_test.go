//go:build unix

package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func shellArgv(script string) []string { return []string{"/bin/sh", "-c", script} }

func TestProgramInheritsOnlyItsInput(t *testing.T) {
	t.Setenv("SECRET_OF_THE_NODE", "x")
	dir := t.TempDir()
	out, err := Run(t.Context(), Spec{Argv: shellArgv(`cat; pwd; /usr/bin/env | grep -c SECRET_OF; exit 3`), Dir: dir, Env: []string{"A=b"}, Stdin: []byte("in ")})
	if err != nil || out.Exit != 3 || string(out.Stdout) != "in "+dir+"\n0\n" {
		t.Errorf("%q %d %v", out.Stdout, out.Exit, err)
	}
}

func TestAMissingProgramIsNamed(t *testing.T) {
	_, err := Run(t.Context(), Spec{Argv: []string{"no-such-program-anywhere"}})
	if !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}

func TestOutputIsKeptAtBothEndsAndCounted(t *testing.T) {
	out, err := Run(t.Context(), Spec{Argv: shellArgv(`echo first; head -c 5000000 /dev/zero; echo last; head -c 100000 /dev/zero >&2; echo why >&2`), StdoutMax: 4096})
	if err != nil || out.StdoutBytes != 5000011 || !out.Cut || len(out.Stdout) > 4200 {
		t.Fatalf("%d of %d bytes, %v", len(out.Stdout), out.StdoutBytes, err)
	}
	if !bytes.HasPrefix(out.Stdout, []byte("first\n")) || !bytes.HasSuffix(out.Stdout, []byte("last\n")) {
		t.Error("an end is missing")
	}
	if len(out.Stderr) != StderrBytesMax || !bytes.HasSuffix(out.Stderr, []byte("why\n")) {
		t.Errorf("%d bytes of stderr", len(out.Stderr))
	}
}

// sleeperFamily starts a shell with sleepers that ignore SIGTERM, one of them a
// grandchild, all holding stdout, and returns a function that reads their ids.
func sleeperFamily(t *testing.T, then string) (argv []string, pids func() []int) {
	file := filepath.Join(t.TempDir(), "pids")
	script := fmt.Sprintf(`trap '' TERM; sleep 300 & echo $! >>%[1]s; (trap '' TERM; sleep 300 & echo $! >>%[1]s); echo up; %[2]s`, file, then)
	return shellArgv(script), func() []int {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var ids []int
		for _, f := range strings.Fields(string(data)) {
			n, err := strconv.Atoi(f)
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, n)
		}
		return ids
	}
}

// hasEnded reports whether a process does not run any more (a zombie does not).
func hasEnded(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(rest, "Z") || strings.HasPrefix(rest, "X")
}

// checkGone gives the kernel a moment to end the killed processes.
func checkGone(t *testing.T, pids []int) {
	t.Helper()
	if len(pids) != 2 {
		t.Fatalf("the test's own processes did not start: %v", pids)
	}
	late := time.Now().Add(time.Minute)
	for _, pid := range pids {
		for !hasEnded(pid) && time.Now().Before(late) {
			<-time.After(5 * time.Millisecond)
		}
		if !hasEnded(pid) {
			t.Errorf("process %d still runs", pid)
		}
	}
}

func TestCanceledProgramEndsItsDescendants(t *testing.T) {
	t.Parallel()
	why := errors.New("somebody canceled")
	ctx, cancel := context.WithCancelCause(t.Context())
	fifo := filepath.Join(t.TempDir(), "up")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	argv, pids := sleeperFamily(t, "echo up >"+fifo+"; wait")
	canceled := make(chan time.Time, 1)
	go func() {
		f, err := os.Open(fifo) // opens when the family is complete
		if err == nil {
			_, _ = io.ReadAll(f)
			_ = f.Close()
		}
		canceled <- time.Now()
		cancel(why)
	}()
	out, err := Run(ctx, Spec{Argv: argv})
	if !errors.Is(err, why) || string(out.Stdout) != "up\n" {
		t.Fatalf("%q %v", out.Stdout, err)
	}
	if took := time.Since(<-canceled); took > TermGrace+20*DrainGrace {
		t.Errorf("took %s", took)
	}
	checkGone(t, pids())
}

func TestEndedProgramLeavesNoBackgroundProcess(t *testing.T) {
	argv, pids := sleeperFamily(t, "exit 0")
	out, err := Run(t.Context(), Spec{Argv: argv})
	if err != nil || out.Exit != 0 || string(out.Stdout) != "up\n" {
		t.Errorf("%q %d %v", out.Stdout, out.Exit, err)
	}
	checkGone(t, pids())
}

// escapeVar makes this test binary leave its process group and then sleep.
const escapeVar = "PROC_TEST_ESCAPE_TO"

func TestMain(m *testing.M) {
	if file := os.Getenv(escapeVar); file != "" {
		escapeSession(file)
	}
	if script := os.Getenv(parentVar); script != "" {
		runParent(script)
	}
	if script := os.Getenv(nodeVar); script != "" {
		runNode(script)
		syscall.Exit(0)
	}
	if address := os.Getenv(dialVar); address != "" {
		dialAsProgram(address)
		syscall.Exit(0)
	}
	if os.Getenv(lookVar) != "" {
		readWithoutBlocking()
		syscall.Exit(0) // os.Exit sleeps for a second under the race detector
	}
	os.Exit(m.Run())
}

func escapeSession(file string) {
	if _, err := syscall.Setsid(); err != nil {
		os.Exit(1)
	}
	if err := os.WriteFile(file, []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		os.Exit(1)
	}
	_ = syscall.Exec("/bin/sleep", []string{"sleep", "300"}, nil)
	os.Exit(1)
}

func TestProcessOutsideTheGroupDoesNotBlockTheCaller(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	out, err := Run(t.Context(), Spec{
		Argv: shellArgv(os.Args[0] + ` & while [ ! -s ` + file + ` ]; do :; done; exit 0`),
		Env:  []string{escapeVar + "=" + file},
	})
	if err != nil || out.Exit != 0 {
		t.Errorf("%d %v", out.Exit, err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(data))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); (err == nil) != (runtime.GOOS != "linux") {
		t.Errorf("the escaped process: %v", err)
	}
}

func TestUnreadInputDoesNotBlockTheCaller(t *testing.T) {
	out, err := Run(t.Context(), Spec{Argv: shellArgv("exec true"), Stdin: make([]byte, 1<<20)})
	if err != nil || out.Exit != 0 {
		t.Errorf("%d %v", out.Exit, err)
	}
}

func TestClippedOutputKeepsBothEnds(t *testing.T) {
	for _, piece := range []int{1, 3, 7, 10, 50} {
		e := endsBuffer{headMax: 5, tailMax: 10}
		all := []byte("0123456789abcdefghijklmnopqrstuvwxyz")
		for rest := all; len(rest) > 0; {
			n := min(piece, len(rest))
			_, _ = e.Write(rest[:n])
			rest = rest[n:]
		}
		if got := string(e.joinEnds()); got != "01234\n[21 bytes not kept]\nqrstuvwxyz" {
			t.Errorf("pieces of %d: %q", piece, got)
		}
	}
}
