package main

import (
	"testing"

	"github.com/troupe-run/troupe/internal/test/judged"
	"github.com/troupe-run/troupe/mailbox/memory"
)

func Example() {
	main()
	// Output:
	// stop.proposed
	// stop.vetoed Name the evidence.
	// stop.proposed
	// stop.allowed
	// The build is broken. Evidence: ci.log:42
	// completed
}

// TestLogs: the logs of the run replay to its end and keep the rules.
func TestLogs(t *testing.T) {
	logs := memory.New(memory.Config{})
	if err := analyze(logs); err != nil {
		t.Fatal(err)
	}
	judged.Store(t, logs, 1)
}
