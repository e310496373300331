package local

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/troupe-run/troupe/internal/test/boxtest"
	"github.com/troupe-run/troupe/mailbox"
)

// TestSmallSegments: the suite passes while entries move to the table all the time.
func TestSmallSegments(t *testing.T) {
	t.Parallel()
	boxtest.Run(t, func(t *testing.T) mailbox.Post {
		s, err := Open(t.Context(), Config{Dir: t.TempDir(), segmentBytes: 600 << 10})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		return s
	})
}

// TestReadsWhileFolding: readers see whole logs while their entries move to the table, and after
// purges.
func TestReadsWhileFolding(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), Config{Dir: t.TempDir(), segmentBytes: 8 << 10, Lazy: true}) // no writer waits for the disk while readers turn
	if err != nil {
		t.Fatal(err)
	}
	const logs, each = 8, 100 // more than 20 segments
	var writers, readers sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for i := range logs {
		at := mailbox.At("run", fmt.Sprint(i))
		writers.Go(func() {
			first, before := 0, uint64(0)
			for n := range each {
				place, err := mailbox.Put(t.Context(), s, at, fmt.Appendf(nil, "%0200d", n))
				if err != nil {
					t.Error(err)
					return
				}
				if n == each/4 {
					before = place
				}
				if n == each/2 {
					first = each / 4
					if err := s.Purge(t.Context(), at, before); err != nil {
						t.Error(err)
					}
				}
				h, err := s.head(at)
				if err != nil || h.Place != place || h.Entries != uint64(n+1-first) {
					t.Errorf("head of %s after entry %d: place %d, want %d; %d entries: %v", at, n, h.Place, place, h.Entries, err)
				}
			}
		})
		readers.Go(func() {
			for ctx.Err() == nil {
				checkRow(t, s, at)
			}
		})
	}
	writers.Wait()
	cancel()
	readers.Wait()
	found, err := s.Addresses(t.Context(), "run")
	if err != nil || len(found) != logs {
		t.Errorf("%v, %v", found, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// checkRow checks that a log holds consecutive entries.
func checkRow(t *testing.T, s *Store, at mailbox.Address) {
	t.Helper()
	var numbers []int
	err := s.Read(t.Context(), at, 0, 0, func(m mailbox.Message) error {
		n := -1
		_, err := fmt.Sscanf(string(m.Data), "%d", &n)
		numbers = append(numbers, n)
		return err
	})
	for i := range numbers {
		if numbers[i] != numbers[0]+i {
			t.Errorf("%s: %v from %d on", at, numbers[max(i-2, 0):min(i+2, len(numbers))], i)
			break
		}
	}
	if err != nil {
		t.Errorf("%s: %v after %v", at, err, slices.Max(append(numbers, 0)))
	}
}
