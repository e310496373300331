package follow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/lazyregexp"
	"github.com/troupe-run/troupe/internal/term"
)

const (
	saidLines  = 8 // of what the agent of a canceled run has said last
	toolsShown = 6 // whose results are left out, by name
)

// returnedHead is the line above each result of a tool in a partial result that software has made.
var returnedHead = lazyregexp.New(`(?m)^(\S+) returned:$`)

// splitCanceled splits the partial result of a canceled run: a few lines of the agent's text, and a description of
// the omitted part; "": nothing was omitted.
func splitCanceled(text string) (said, left string) {
	said = text
	heads := returnedHead.FindAllStringSubmatchIndex(text, -1)
	var tools []string
	for _, h := range heads {
		if name := term.CleanLine(text[h[2]:h[3]]); !slices.Contains(tools, name) {
			tools = append(tools, name)
		}
	}
	if len(heads) > 0 {
		said = text[:heads[0][0]]
		left = "what " + strings.Join(tools[:min(len(tools), toolsShown)], ", ")
		if n := len(tools) - toolsShown; n > 0 {
			left += fmt.Sprintf(" and %d more", n)
		}
		left += " returned"
	}
	lines := strings.Split(strings.TrimSpace(said), "\n")
	if n := len(lines) - saidLines; n > 0 {
		lines = lines[:saidLines]
		rest := term.FormatCount(n, "line") + " of what the agent said"
		if left == "" {
			left = rest
		} else {
			left = rest + ", and " + left
		}
	}
	return strings.Join(lines, "\n"), left
}
