package tokens_test

import (
	"strings"
	"testing"
	"time"

	"github.com/troupe-run/troupe/budget/tokens"
	"github.com/troupe-run/troupe/model"
)

func TestTheVocabularyLoads(t *testing.T) {
	if err := tokens.Load(); err != nil {
		t.Fatal(err)
	}
	if n := tokens.Count("The quick brown fox jumps over the lazy dog."); n < 8 || n > 12 {
		t.Errorf("ten words and a full stop count %d tokens", n)
	}
	if n := tokens.Count(""); n != 0 {
		t.Errorf("nothing counts %d", n)
	}
}

// A byte-level vocabulary never makes more tokens than bytes, whatever they are.
func TestACountIsNeverAboveTheBytes(t *testing.T) {
	for _, text := range []string{"\x00\xff\xfe", "日本語のテキスト", strings.Repeat("é", 700), "a\n\n\n\t b", "<|endoftext|>"} {
		if n := tokens.Count(text); n > 3*int64(len(text)) || n == 0 {
			t.Errorf("%q: %d tokens of %d bytes", text, n, len(text))
		}
	}
}

// The encoder's time grows with the square of a word, and nobody bounds what a
// tool returns: 64 megabytes without a space, for which a whole count takes minutes,
// are still estimated at once.
//
//behaviour:shows D1
func TestHostileTextIsEstimatedInBoundedTime(t *testing.T) {
	for name, unit := range map[string]string{"one word": "ab", "spaces": " ", "no letters": "\xff", "chinese": "漢字"} {
		text := strings.Repeat(unit, 64<<20/len(unit))
		began := time.Now()
		n := tokens.Estimate(text)
		if took := time.Since(began); took > time.Minute {
			t.Errorf("%s: %v", name, took)
		}
		if n <= 0 || n > 3*int64(len(text)) {
			t.Errorf("%s: %d tokens of %d bytes", name, n, len(text))
		}
	}
}

// A long run is cut now and then, not from some place on into its characters.
func TestACutRunCountsLikeItsPieces(t *testing.T) {
	word := strings.Repeat("abcd", 64)
	if n, piece := tokens.Count(strings.Repeat(word, 20)), tokens.Count(word); n != 20*piece {
		t.Errorf("20 pieces of %d tokens count %d", piece, n)
	}
}

func TestALongTextIsEstimatedLikeItsEnds(t *testing.T) {
	text := strings.Repeat("func main() { fmt.Println(\"hello\") }\n", 4000)
	exact, estimate := tokens.Count(text), tokens.Estimate(text)
	if off := estimate - exact; off < -exact/50 || off > exact/50 {
		t.Errorf("estimated %d, counted %d", estimate, exact)
	}
}

func TestAMessageCountsAllItsTexts(t *testing.T) {
	call := model.Message{Role: model.Assistant, Text: "I look.", Calls: []model.ToolCall{{Name: "grep", Args: `{"q":"x"}`}}}
	want := tokens.Count("I look.") + tokens.Count("grep") + tokens.Count(`{"q":"x"}`)
	if n := tokens.Message(call); n != want {
		t.Errorf("%d, want %d", n, want)
	}
	if n := tokens.Message(model.Message{Role: model.ToolRole, Results: []model.ToolResult{{Text: "found it"}}}); n != tokens.Count("found it") {
		t.Errorf("a result counts %d", n)
	}
}

func TestCutKeepsWholeRunesWithinTheLimit(t *testing.T) {
	text := tokens.Cut(strings.Repeat("für größere Wörter ", 50), 20)
	if n := tokens.Count(text); n > 20 || n < 15 {
		t.Errorf("%d tokens are left of %q", n, text)
	}
}

// BenchmarkEstimate prints what a count costs: go test ./budget/tokens -bench .
func BenchmarkEstimate(b *testing.B) {
	text := strings.Repeat("The answer of a tool is 5 KB of plain words, names and numbers: 42, 1337.\n", 70)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		tokens.Estimate(text)
	}
}

// A reply may bring any number of calls of any size.
func TestAMessageOfManyLargeCallsIsEstimatedInBoundedTime(t *testing.T) {
	calls := make([]model.ToolCall, 128)
	args := strings.Repeat("some words ", 200_000) // to count all of them takes minutes
	for i := range calls {
		calls[i] = model.ToolCall{Name: "write_file", Args: args}
	}
	began := time.Now()
	n := tokens.Message(model.Message{Calls: calls})
	if took := time.Since(began); took > time.Minute || n < 128*200_000 {
		t.Errorf("%d tokens after %v", n, took)
	}
}
