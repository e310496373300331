package settings

import (
	"maps"
	"slices"
	"strings"
)

// suggestion is the end of a message about an unknown key.
func suggestion(key string) string {
	names := slices.Sorted(maps.Keys(keys))
	if near := Near(key, names); near != "" {
		return "; did you mean " + near + "?"
	}
	return "; the keys are " + strings.Join(names, ", ")
}

// wordMax bounds the words that are compared.
const wordMax = 64

// Near is the name that a misspelled word was probably meant to be, or "".
func Near(word string, names []string) string {
	if len(word) > wordMax {
		return ""
	}
	word = plain(word)
	best, least := "", len(word)/2+1
	for _, n := range names {
		if d := distance(word, plain(n)); d < least {
			best, least = n, d
		}
	}
	return best
}

// plain is a word without what people spell differently.
func plain(word string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(word))
}

// distance is how many letters must be put in, left out, replaced or swapped
// with their neighbour.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	rows := make([][]int, len(x)+1)
	for i := range rows {
		rows[i] = make([]int, len(y)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(x); i++ {
		for j := 1; j <= len(y); j++ {
			differ := 1
			if x[i-1] == y[j-1] {
				differ = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+differ)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(x)][len(y)]
}
