package multimatch

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTagsAreFoundInAnyCase(t *testing.T) {
	s := New([]Word{{"secret", 1}, {"secret_key", 2}, {"key", 4}, {"", 8}})
	for text, want := range map[string]uint64{"": 0, "nothing": 0, "SeCrEt": 1, "a secret_KEY b": 7, "keyboard": 4} {
		if got := s.MatchTags([]byte(text)); got != want {
			t.Errorf("%q: tags %b, want %b", text, got, want)
		}
	}
}

func TestEachMatchReportsTheEndOfEveryWord(t *testing.T) {
	s := New([]Word{{"ab", 1}, {"b", 2}})
	var ends []int
	s.EachMatch([]byte("xabyb"), func(end int, tags uint64) { ends = append(ends, end, int(tags)) })
	if len(ends) != 4 || ends[0] != 3 || ends[1] != 3 || ends[2] != 5 || ends[3] != 2 {
		t.Errorf("ends %v", ends)
	}
}

func TestAutomatonMatchesSearchPerWord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.StringMatching(`[abAc]{1,4}`), 1, 8).Draw(t, "words")
		text := rapid.StringMatching(`[abABcC]{0,30}`).Draw(t, "text")
		var words []Word
		want := uint64(0)
		for i, w := range texts {
			words = append(words, Word{w, 1 << i})
			if strings.Contains(strings.ToLower(text), strings.ToLower(w)) {
				want |= 1 << i
			}
		}
		s := New(words)
		if got := s.MatchTags([]byte(text)); got != want {
			t.Fatalf("%v in %q: %b, want %b", texts, text, got, want)
		}
	})
}
