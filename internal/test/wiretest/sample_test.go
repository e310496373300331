package wiretest

import (
	"slices"
	"strings"
	"testing"
)

// TestSampleHoldsEveryBoundary: the places where events meet and the characters of
// several bytes are cut whatever the seed; -1 cuts after every byte.
func TestSampleHoldsEveryBoundary(t *testing.T) {
	events := []string{"data: " + strings.Repeat("a", 50) + "\n\n", "data: " + strings.Repeat("b", 40) + "ö" + strings.Repeat("c", 40) + "\n\n"}
	first, size := len(events[0]), len(strings.Join(events, ""))
	always := []int{0, 1, 2, first - 2, first - 1, first, first + 1, first + 2, first + 47, size - 2, size - 1, size}
	if got := samplePositions(events, 0, 1); !slices.Equal(got, always) {
		t.Errorf("%v, want %v", got, always)
	}
	got := samplePositions(events, 10, 1)
	if !slices.Equal(got, samplePositions(events, 10, 1)) || slices.Equal(got, samplePositions(events, 10, 2)) {
		t.Error("the sample follows its seed alone")
	}
	if len(got) != len(always)+10 {
		t.Errorf("%d places, want 10 beside %d", len(got), len(always))
	}
	for _, at := range always {
		if !slices.Contains(got, at) {
			t.Errorf("not cut at %d", at)
		}
	}
	for _, sample := range []int{-1, size} {
		if all := samplePositions(events, sample, 3); len(all) != size+1 || all[size] != size {
			t.Errorf("%d of %d places", len(all), size+1)
		}
	}
}
