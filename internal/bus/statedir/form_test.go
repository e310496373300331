package statedir_test

import (
	"sync"
	"testing"

	"github.com/troupe-run/troupe/internal/bus/statedir"
)

// TestFormFileIsNeverSeenHalfWritten: a program that starts checks the form before it holds
// the lock, while another one writes it.
func TestFormFileIsNeverSeenHalfWritten(t *testing.T) {
	for range 200 {
		dir := t.TempDir()
		var checks sync.WaitGroup
		for range 4 {
			checks.Go(func() {
				for range 50 {
					if err := statedir.CheckForm(dir); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		if err := statedir.WriteForm(dir); err != nil {
			t.Fatal(err)
		}
		checks.Wait()
	}
}
