package main

import (
	"testing"

	"github.com/troupe-run/troupe/internal/test/judged"
	"github.com/troupe-run/troupe/mailbox/memory"
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
	logs := memory.New(memory.Config{})
	if err := edit(logs); err != nil {
		t.Fatal(err)
	}
	judged.Store(t, logs, 1)
}
