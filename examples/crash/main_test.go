package main

import (
	"os"
	"testing"

	"github.com/troupe-run/troupe/internal/test/judged"
)

// TestMain lets the test binary be the process that is killed.
func TestMain(m *testing.M) {
	if os.Getenv(dirEnv) != "" {
		main()
	}
	os.Exit(m.Run())
}

func Example() {
	main()
	// Output:
	// the first process: signal: killed
	// the second: completed, the tool said: counted
	// the tool ran 1 time(s)
}

// TestLogs: the logs of the run, which two processes have written, replay to its end and keep the rules.
func TestLogs(t *testing.T) {
	dir := t.TempDir()
	crash(dir)
	judged.Dir(t, stateDir(dir), 1)
}
