package main

import (
	"testing"

	"github.com/troupe-run/troupe/internal/test/judged"
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
	dir := t.TempDir()
	if err := analyze(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	judged.Dir(t, dir, 1)
}
