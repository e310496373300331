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
	if name := NearestName(key, names); name != "" {
		return "; did you mean " + name + "?"
	}
	return "; the keys are " + strings.Join(names, ", ")
}

// NearestName returns the name that a misspelled word probably means, or "".
func NearestName(word string, names []string) string { return suggest.Nearest(word, names) }
