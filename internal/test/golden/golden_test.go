package golden

import (
	"strings"
	"testing"
	"time"
)

// A nil list and an empty one are told apart, and what is zero is left out.
func TestTreeKeepsEmptyLists(t *testing.T) {
	type inner struct {
		Text string `json:"text,omitempty"`
	}
	v := struct {
		All, None []string
		Part      []inner       `json:"part"`
		Wait      time.Duration `json:"wait"`
		inner
		Zero int `json:"zero"`
	}{None: []string{}, Part: []inner{{"a"}}, Wait: time.Second}
	got := strings.Join(strings.Fields(JSON(t, ToTree(v, strings.ToUpper))), " ")
	if want := `{ "None": [], "part": [ { "text": "A" } ], "wait": "1s" }`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// A failure shows the lines that differ, and no others.
func TestDiffShowsOnlyDifferingLines(t *testing.T) {
	if got := diffLines("a\nb\nc\n", "a\nB\nc\n"); got != "from line 2:\n- b\n+ B\n" {
		t.Errorf("%q", got)
	}
	if got := diffLines("a\n", "a\n"); got != "" {
		t.Errorf("%q", got)
	}
	if got := diffLines("", strings.Repeat("x\n", 100)); !strings.Contains(got, "more lines") || strings.Count(got, "\n") > diffLinesMax+4 {
		t.Errorf("%q", got)
	}
}
