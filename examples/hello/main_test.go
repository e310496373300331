package main

import (
	"testing"

	"github.com/troupe-run/troupe/internal/test/judged"
)

func Example() {
	main()
	// Output:
	// Salve, world!
	// completed after 2 turns
}

// TestLogs: the logs of the run replay to its end and keep the rules.
func TestLogs(t *testing.T) {
	dir := t.TempDir()
	if err := hello(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	judged.Dir(t, dir, 1)
}
