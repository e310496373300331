package clip_test

import (
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/clip"
)

func TestCutsFallBetweenCharacters(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{clip.Prefix("größe", 3), "gr"},
		{clip.Prefix("größe", 4), "grö"},
		{clip.Prefix("größe", 100), "größe"},
		{clip.Prefix("größe", -1), ""},
		{clip.Marked("größe", 3, "…"), "gr…"},
		{clip.Marked("größe", 7, "…"), "größe"},
		{clip.Text("größe", 4), "grö …"},
		{clip.Ends("größere Wörter", 9), "größ … ter"},
		{clip.Ends("kurz", 9), "kurz"},
		{clip.Around("one two three four five", "four", 8), "… ree four …"},
		{clip.Around("one two three four five", "none", 8), "one t … ve"},
		{clip.OneLine(" a\n\tb  c "), "a b c"},
		{clip.Middle("ab\ncd", 5), "ab\ncd"},
		{clip.Middle("one\ntwo\n"+strings.Repeat("x\n", 20)+"end\n", 24), "one\ntwo\nx\nx\nx\nx\n[… 16 lines, 33 bytes are not shown here …]\nend\n"},
		{clip.Middle(strings.Repeat("é", 40), 13), "éééé\n[… 1 lines, 70 bytes are not shown here …]\né"},
		{clip.Lines([]string{"a", "b", "c"}, 100), "a\nb\nc"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

func TestLinesOfTheMiddleAreLeftOut(t *testing.T) {
	lines := strings.Split(strings.Repeat("0123456789 ", 20), " ")[:20]
	got := clip.Lines(lines, 88)
	if want := strings.Join([]string{lines[0], lines[0], "(left out here: 12 lines)"}, "\n"); !strings.HasPrefix(got, want) || strings.Count(got, "\n") != 8 {
		t.Errorf("%q", got)
	}
}

func TestNames(t *testing.T) {
	for want, names := range map[string][]string{"": nil, "a": {"a"}, "a, b": {"a", "b"}, "a, b and 2 more": {"a", "b", "c", "d"}} {
		if got := clip.Names(names, 2); got != want {
			t.Errorf("%q: %q, want %q", names, got, want)
		}
	}
}

func TestFirstLine(t *testing.T) {
	for text, want := range map[string]string{"": "", " a \n b": "a ", "\n\na\nb": "a", "a\r\nb": "a\r"} {
		if got := clip.FirstLine(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
