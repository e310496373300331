package term

import (
	"strings"
	"testing"
)

func TestMarkdownIsWrappedAndDrawn(t *testing.T) {
	text := "# Done #\n\nI changed **a.go** and ran `go test ./...` over and over until it passed.\n\n- one\n- two words that go on\n  1) nested\n\n```go\nfunc main() {  }   // stays as it is, however long it is\n```\n> a quote\n\n| a | b |\n|---|---|\n\n[docs](https://x.example)\n---\n"
	want := []string{"Done", "", "I changed a.go and ran go test", "./... over and over until it", "passed.", "", "• one", "• two words that go on", "  1) nested", "",
		"    func main() {  }   // stays as it is, however long it is", "│ a quote", "", "a  b", "────", "", "docs (https://x.example)", strings.Repeat("─", barColumns)}
	if got := (Style{}).Markdown(text, 30); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	colored := strings.Join(Style{On: true}.Markdown("**a** `b`", 30), "\n")
	if colored != "\x1b[1ma\x1b[0m \x1b[36mb\x1b[0m" {
		t.Errorf("%q", colored)
	}
}

func TestMarkdownTablesFitTheTerminal(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		width int
		want  []string
	}{
		"columns are padded":    {"| file | what |\n|:--|--:|\n| `a.go` | **two** \\| three |\n| longer.go |\n", 60, []string{"file       what", "──────────────────────", "a.go       two | three", "longer.go"}},
		"wide cells wrap":       {"| n | text |\n|---|---|\n| 1 | " + strings.Repeat("word ", 8) + "|\n| 2 | x |\n", 28, []string{"n  text", strings.Repeat("─", 28), "1  word word word word word", "   word word word", "2  x"}},
		"too many columns":      {"|" + strings.Repeat(" aaaaaaaaaaaaaaaaaaaa |", 5) + "\n|" + strings.Repeat("---|", 5) + "\n", 30, []string{"|" + strings.Repeat(" aaaaaaaaaaaaaaaaaaaa |", 5), "|" + strings.Repeat("---|", 5)}},
		"no table":              {"| not a table |\n| at all |\n", 30, []string{"| not a table |", "| at all |"}},
		"a bar within code":     {"| a |\n|---|\n| `x | y` |\n", 30, []string{"a", "─────", "x | y"}},
		"text before and after": {"See:\n| a |\n|---|\n| b |\nThat is all.\n", 30, []string{"See:", "a", "─", "b", "That is all."}},
	} {
		if got := (Style{}).Markdown(c.text, c.width); strings.Join(got, "\n") != strings.Join(c.want, "\n") {
			t.Errorf("%s: got\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
	long := (Style{}).Markdown("| a | b |\n|---|---|\n| "+strings.Repeat("x", 1<<20)+" | y |\n", 80)
	for _, line := range long {
		if Width(line) > 80 {
			t.Fatalf("a line has %d columns", Width(line))
		}
	}
}

func TestMoneyIsShownWithItsLimit(t *testing.T) {
	for _, c := range []struct {
		used, limit, held float64
		estimated         bool
		want              string
	}{{0.02, 1, 0.04, false, "$0.02 of $1.00 (0.04 held)"}, {0.0004, 0, 0, false, "$0.0004"}, {0, 0, 0, false, ""}, {0.5, 1, 0, true, "~$0.50 of $1.00"}} {
		if got := FormatMoney(c.used, c.limit, c.held, c.estimated); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
