package main

import (
	"testing"

	"github.com/troupe-run/troupe/internal/test/judged"
)

func Example() {
	main()
	// Output:
	// completed, 4 agents, partial false
	// I read: Review this.
	//
	// What critic answered:
	// It holds.
	//
	// completed, 4 agents, partial false
	// I read: Review this.
	//
	// Your part: one line
	//
	// What historian answered:
	// One person wrote it, in a week.
	//
	// What critic answered:
	// It holds.
	//
	// troupe: node: there is no agent "nobody" (400)
}

// TestLogs: the logs of the two runs that begin replay to their ends and keep the rules.
func TestLogs(t *testing.T) {
	dir := t.TempDir()
	if err := review(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	judged.Dir(t, dir, 2)
}
