package main

import (
	"testing"

	"github.com/troupe-run/troupe/internal/test/judged"
)

func Example() {
	main()
	// Output:
	// History: Mostly one person. Verdict: It holds.
	// root     editor
	// root-1-0 historian
	// root-1-1 critic
	// the pool paid for all: true
}

// TestLogs: the logs of the run replay to its end and keep the rules.
func TestLogs(t *testing.T) {
	dir := t.TempDir()
	if err := edit(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	judged.Dir(t, dir, 1)
}
