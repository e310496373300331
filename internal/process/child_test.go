//go:build unix

package process

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"testing"
)

func TestAChildIsTalkedToUntilItIsStopped(t *testing.T) {
	c, err := Start(Spec{Argv: shellArgv(`echo up >&2; while read -r line; do echo "got $line"; done; exit 3`), Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Stop()
	if _, err := io.WriteString(c.Stdin, "one\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(c.Stdout).ReadString('\n'); err != nil || line != "got one\n" {
		t.Errorf("%q %v", line, err)
	}
	c.Stop()
	<-c.Done()
	if c.Stderr() != "up\n" {
		t.Errorf("%q", c.Stderr())
	}
}

func TestAChildThatDoesNotListenIsKilledWithItsFamily(t *testing.T) {
	t.Parallel()
	argv, pids := sleeperFamily(t, "wait")
	c, err := Start(Spec{Argv: argv})
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(c.Stdout).ReadString('\n'); err != nil || line != "up\n" {
		t.Errorf("%q %v", line, err)
	}
	c.Stop()
	checkGone(t, pids())
}

func TestEndedChildLeavesNoProcess(t *testing.T) {
	argv, pids := sleeperFamily(t, "exit 0")
	c, err := Start(Spec{Argv: argv})
	if err != nil {
		t.Fatal(err)
	}
	<-c.Done()
	checkGone(t, pids())
	c.Stop()
	if _, err := Start(Spec{Argv: []string{"no-such-program-anywhere"}}); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}

// parentVar makes this test binary start a family as a child, and then kill
// itself with no chance to end anything.
const parentVar = "PROC_TEST_PARENT_OF"

func runParent(script string) {
	c, err := Start(Spec{Argv: shellArgv(script)})
	if err != nil {
		os.Exit(1)
	}
	if line, err := bufio.NewReader(c.Stdout).ReadString('\n'); err != nil || line != "up\n" {
		os.Exit(1)
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil || self.Kill() != nil {
		os.Exit(1)
	}
	select {}
}

func TestAChildEndsAlsoWhenWeAreKilled(t *testing.T) {
	argv, pids := sleeperFamily(t, "wait")
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{parentVar + "=" + argv[2], "PATH=" + os.Getenv("PATH")}
	var killed *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &killed) || killed.ExitCode() != -1 {
		t.Fatal(err)
	}
	checkGone(t, pids())
}
