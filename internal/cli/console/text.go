// Package console writes what commands say: data to stdout in the chosen format, progress and
// errors to stderr.
package console

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/troupe-run/troupe/internal/term"
	"github.com/troupe-run/troupe/internal/workdir"
)

// CountOf is a number with its noun in the singular or plural.
func CountOf(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Remark is a note or a problem with its place.
type Remark struct {
	Path string `json:"path,omitempty"`
	Line int    `json:"line,omitempty"`
	Text string `json:"text"`
}

func (r Remark) String() string {
	switch {
	case r.Path == "":
		return r.Text
	case r.Line == 0:
		return r.Path + ": " + r.Text
	}
	return fmt.Sprintf("%s:%d: %s", r.Path, r.Line, r.Text)
}

// ShortPath returns a path as a person in the directory would write it: relative to it, or to the home directory.
// Without a directory, only the latter.
func ShortPath(path, dir string) string {
	if rel, ok := workdir.Below(dir, path); ok {
		return rel
	}
	if home, err := os.UserHomeDir(); err == nil {
		if rel, ok := workdir.Below(home, path); ok {
			return filepath.Join("~", rel)
		}
	}
	return path
}

// DollarsPerMillion turns billionths of a dollar a token into dollars a million, with two
// decimals at least.
func DollarsPerMillion(nano int64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.3f", float64(nano)/1e3), "0")
}

// Took renders a duration in milliseconds; 0 is "-".
func Took(ms int64) string {
	if ms == 0 {
		return "-"
	}
	return term.FormatDuration(time.Duration(ms) * time.Millisecond)
}

// WordsOr returns the words, or the meaning of a missing list.
func WordsOr(list []string, without string) string {
	switch {
	case list == nil:
		return without
	case len(list) == 0:
		return "none"
	}
	return term.CleanLine(strings.Join(list, " "))
}

// CostText renders a cost in dollars; without a price it is unknown, and an estimate has a ~ before it. A cost that is
// known to be zero is $0.
func CostText(usd float64, known, estimated bool) string {
	if !known {
		return "unknown"
	}
	return term.FormatUSD(usd, estimated)
}

// Age is how long ago a stamp was.
func Age(stamp string) string {
	at, err := time.Parse(time.RFC3339, stamp)
	if err != nil {
		return "-"
	}
	return term.FormatAge(time.Since(at))
}

// CleanText keeps the lines of a text and nothing else that a terminal acts on.
func CleanText(text string) string { return strings.Trim(term.CleanText(text), "\n") }
