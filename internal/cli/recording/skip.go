package recording

import (
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/filechange"
	"github.com/troupe-run/troupe/internal/term"
)

// skip leaves the files out that one of the patterns names, and returns their paths.
func (c *changes) skip(patterns []string) (skipped []string, err error) {
	var nets []filechange.Net
	used := make([]bool, len(patterns))
	for _, n := range c.nets {
		isSkipped := false
		for i, pattern := range patterns {
			pattern = strings.TrimPrefix(pattern, "./")
			matches, err := doublestar.Match(pattern, n.Path)
			if err != nil {
				return nil, exit.UsageError("* matches part of a name, ** any directories", "--skip %q is not a pattern", pattern)
			}
			if matches || pattern == n.Path {
				isSkipped, used[i] = true, true
			}
		}
		if isSkipped {
			skipped = append(skipped, n.Path)
		} else {
			nets = append(nets, n)
		}
	}
	if i := slices.Index(used, false); i >= 0 {
		return nil, exit.UsageError("troupe diff "+c.file.Header.Run+" shows the files",
			"--skip %q names no file that the run changed", patterns[i])
	}
	c.nets = nets
	return skipped, nil
}

// skipsShown is how many files a hint names.
const skipsShown = 5

// skipHint says how to take back the rest.
func skipHint(refused filechange.Refusals) string {
	var flags []string
	for i, f := range refused {
		if i == skipsShown {
			flags = append(flags, "…")
			break
		}
		flags = append(flags, "--skip "+session.QuoteForShell(term.CleanLine(f.Path)))
	}
	end := " leaves it as it is and takes back the rest"
	if len(refused) > 1 {
		end = " leaves them as they are and takes back the rest"
	}
	return strings.Join(flags, " ") + end
}
