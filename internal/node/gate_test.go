package node

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// newGate makes a named pipe. The program of a tool that reads from it waits until the
// gate opens: `true < gate`. It costs no CPU while it waits, as looking again and again
// would in dozens of runs.
func newGate(t *testing.T) string {
	t.Helper()
	gate := filepath.Join(t.TempDir(), "gate")
	if out, err := exec.Command("mkfifo", gate).CombinedOutput(); err != nil {
		t.Fatalf("mkfifo: %v\n%s", err, out)
	}
	return gate
}

// openGate lets all programs that wait at a gate go on, and those that come until the
// end of the test.
func openGate(t *testing.T, gate string) {
	t.Helper()
	writer, err := os.OpenFile(gate, os.O_RDWR, 0) // to open a pipe for both never waits
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := writer.Close(); err != nil {
			t.Error(err)
		}
	})
}
