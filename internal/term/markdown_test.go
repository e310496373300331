package term

import (
	"strings"
	"testing"
)

func TestMarkdownIsWrappedAndDrawn(t *testing.T) {
	text := "# Done #\n\nI changed **a.go** and ran `go test ./...` over and over until it passed.\n\n- one\n- two words that go on\n  1) nested\n\n```go\nfunc main() {  }   // stays as it is, however long it is\n```\n> a quote\n\n| a | b |\n|---|---|\n\n[docs](https://x.example)\n---\n"
	want := []string{"Done", "", "I changed a.go and ran go test", "./... over and over until it", "passed.", "", "• one", "• two words that go on", "  1) nested", "",
		"    func main() {  }   // stays as it is, however long it is", "│ a quote", "", "| a | b |", "|---|---|", "", "docs (https://x.example)", strings.Repeat("─", barColumns)}
	if got := (Style{}).Markdown(text, 30); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	colored := strings.Join(Style{On: true}.Markdown("**a** `b`", 30), "\n")
	if colored != "\x1b[1ma\x1b[0m \x1b[36mb\x1b[0m" {
		t.Errorf("%q", colored)
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
