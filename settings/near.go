package settings

import (
	"maps"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/near"
)

// suggestion is the end of a message about an unknown key.
func suggestion(key string) string {
	names := slices.Sorted(maps.Keys(keys))
	if name := Near(key, names); name != "" {
		return "; did you mean " + name + "?"
	}
	return "; the keys are " + strings.Join(names, ", ")
}

// Near is the name that a misspelled word was probably meant to be, or "".
func Near(word string, names []string) string {
	if len(word) > near.WordMax {
		return ""
	}
	word = near.Plain(word)
	best, least := "", len(word)/2+1
	for _, n := range names {
		if d := near.Distance(word, near.Plain(n)); d < least {
			best, least = n, d
		}
	}
	return best
}
