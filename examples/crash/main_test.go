package main

import (
	"os"
	"testing"
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
