// Package suggest finds the name that a misspelled word was probably meant to be.
package suggest

import (
	"slices"
	"strings"
)

// WordMax bounds the words that are compared.
const WordMax = 64

var separators = strings.NewReplacer("_", "", "-", "")

// NormalizeWord returns a word without the parts that people spell differently.
func NormalizeWord(word string) string {
	return strings.ToLower(separators.Replace(word))
}

// EditDistance returns how many letters must be inserted, deleted, replaced or swapped with
// their neighbour.
func EditDistance(a, b string) int {
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

// Nearest returns the name that a misspelled word was probably meant to be, or "".
func Nearest(word string, names []string) string {
	if len(word) > WordMax {
		return ""
	}
	word = NormalizeWord(word)
	best, least := "", len(word)/2+1
	for _, n := range names {
		if d := EditDistance(word, NormalizeWord(n)); d < least {
			best, least = n, d
		}
	}
	return best
}

// Misspells reports whether a word is almost a name, or is it in other letters of case. In a short name another letter
// makes another word: ship is not skip.
func Misspells(word, name string) bool {
	word = strings.ToLower(strings.TrimSpace(word))
	if len(word) > WordMax {
		return false
	}
	if len(name) < shortName && len(word) == len(name) {
		return slices.Equal(slices.Sorted(slices.Values([]byte(word))), slices.Sorted(slices.Values([]byte(name))))
	}
	return EditDistance(word, name) <= (len(name)+1)/4
}

// shortName is the length below which Misspells knows no replaced letters.
const shortName = 6
