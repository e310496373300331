package estimate_test

import (
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/estimate"
	"github.com/troupe-run/troupe/model"
)

func TestEstimateUsesTheCountedTokens(t *testing.T) {
	text := strings.Repeat("x", 300)
	counted := estimate.Messages(model.Message{Text: text, Tokens: 40})
	bytes := estimate.Messages(model.Message{Text: text})
	absurd := estimate.Messages(model.Message{Text: text, Tokens: 1 << 60})
	if counted != 44 || bytes != 104 || absurd != bytes {
		t.Errorf("counted %d, by bytes %d, with an absurd count %d", counted, bytes, absurd)
	}
	if n := estimate.Messages(model.Message{Text: text, Tombstone: true}); n != 0 {
		t.Errorf("a tombstone is never sent, and counts %d", n)
	}
	if n := estimate.Messages(model.Message{Opaque: []model.Opaque{{Data: make([]byte, 9000)}}}); n != 4+estimate.MediaTokens {
		t.Errorf("a part that is no text counts %d", n)
	}
}

// The vocabulary here is not the provider's: after a few reports the estimate
// is as far off as the newest reports are, not as the vocabulary is.
//
//behaviour:shows D1
func TestRatioLearnsFromReportedUsage(t *testing.T) {
	var r estimate.Ratio
	if r.Apply(1000) != 1000 {
		t.Errorf("without a sample 1000 became %d", r.Apply(1000))
	}
	r = r.Sample(1300, 1000).Sample(2600, 2000)
	if got := r.Apply(1000); got != 1300 {
		t.Errorf("1000 became %d, want 1300", got)
	}
	for range 100 {
		r = r.Sample(8000, 10_000)
	}
	if got := r.Apply(1000); got < 795 || got > 810 {
		t.Errorf("old samples do not fade: 1000 became %d", got)
	}
}

// Usage comes from outside: no report makes an estimate absurd.
func TestARatioStaysWithinItsBounds(t *testing.T) {
	for _, s := range [][2]int64{{1 << 60, 100}, {1, 1 << 39}, {-5, 1000}, {0, 1000}, {1000, 0}, {1000, -1}, {1 << 62, 1 << 62}} {
		r := estimate.Ratio{}.Sample(s[0], s[1])
		if got := r.Apply(1000); got < 250 || got > 4000 {
			t.Errorf("sample %v: 1000 became %d", s, got)
		}
	}
	if r := (estimate.Ratio{}).Sample(1<<50, 1<<50); r != (estimate.Ratio{}) {
		t.Errorf("what no prompt can have is a sample: %+v", r)
	}
}
