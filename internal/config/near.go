package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/suggest"
)

// suggestKey returns the end of a message about an unknown key.
func suggestKey(key string) string {
	names := slices.Sorted(maps.Keys(settingKinds))
	if name := Near(key, names); name != "" {
		return "; did you mean " + name + "?"
	}
	return "; the keys are " + strings.Join(names, ", ")
}

// Near returns the name that a misspelled word probably stands for, or "".
func Near(word string, names []string) string {
	if len(word) > suggest.WordMax {
		return ""
	}
	word = suggest.Plain(word)
	best, least := "", len(word)/2+1
	for _, n := range names {
		if d := suggest.Distance(word, suggest.Plain(n)); d < least {
			best, least = n, d
		}
	}
	return best
}
