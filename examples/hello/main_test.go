package main

import (
	"testing"

	"github.com/troupe-run/troupe/internal/test/judged"
	"github.com/troupe-run/troupe/mailbox/memory"
)

func Example() {
	main()
	// Output:
	// Salve, world!
	// completed after 2 turns
}

// TestLogs: the logs of the run replay to its end and keep the rules.
func TestLogs(t *testing.T) {
	logs := memory.New(memory.Config{})
	if err := hello(logs); err != nil {
		t.Fatal(err)
	}
	judged.Store(t, logs, 1)
}
