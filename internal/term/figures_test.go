package term

import (
	"encoding/json"
	"os"
	"testing"
	"time"
)

// Figures are written by one rule on all screens. The page is tested with the same cases.
func TestFiguresForPeople(t *testing.T) {
	raw, err := os.ReadFile("testdata/figures.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases map[string][]struct {
		Value float64
		Text  string
	}
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	for kind, format := range map[string]func(float64) string{
		"tokens":       func(v float64) string { return FormatTokens(int64(v)) },
		"usd":          func(v float64) string { return FormatUSD(v, false) },
		"milliseconds": func(v float64) string { return FormatDuration(time.Duration(v) * time.Millisecond) },
	} {
		if len(cases[kind]) == 0 {
			t.Errorf("no cases of %s", kind)
		}
		for _, c := range cases[kind] {
			if got := format(c.Value); got != c.Text {
				t.Errorf("%g %s: %q, want %q", c.Value, kind, got, c.Text)
			}
		}
	}
}
