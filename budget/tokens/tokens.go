// Package tokens counts the tokens of texts with a vocabulary that is embedded in
// the program. It is not the vocabulary of any model in service: a count is an
// estimate, which package agent calibrates by the reports of providers. The shells count
// replies and results when they arrive; estimate.Messages estimates messages from these counts, and
// from the bytes of texts without a count.
//
// Loading the vocabulary takes some 50 ms and 8 MiB, so it is loaded once, by the
// first count.
package tokens

import (
	"errors"
	"fmt"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/cohere-ai/tokenizer"

	"github.com/troupe-run/troupe/internal/clip"
)

// ErrVocabulary is returned when the embedded vocabulary cannot be loaded.
var ErrVocabulary = errors.New("tokens: no vocabulary")

const (
	vocabulary = "coheretext-50k"
	// runBytesMax is the longest run without a break that the encoder gets in one
	// piece: its time grows with the square of the run.
	runBytesMax = 256
	// sampleBytesMax is how much of a text Estimate reads: about 30 ms of one core.
	sampleBytesMax = 32 << 10
)

// encoder is shared by all callers, which only read it.
var encoder = sync.OnceValues(func() (*tokenizer.Encoder, error) {
	e, err := tokenizer.NewFromPrebuilt(vocabulary)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrVocabulary, err)
	}
	return e, nil
})

// Load loads the vocabulary, for callers that want to know early whether it can be loaded.
func Load() error {
	_, err := encoder()
	return err
}

// Count is the number of tokens of a text. It is exact except for the cuts in runs
// longer than runBytesMax, which can only raise it. Without a vocabulary it is the
// number of bytes: a byte-level vocabulary never needs more.
func Count(text string) int64 {
	e, err := encoder()
	if err != nil {
		return int64(len(text))
	}
	var n int64
	for piece := range pieces(text) {
		tokens, _ := e.Encode(piece)
		n += int64(len(tokens))
	}
	return n
}

// Estimate is Count for texts of any size: of a long text it counts the beginning
// and the end, and assumes that the middle is like them.
func Estimate(text string) int64 {
	if len(text) <= sampleBytesMax {
		return Count(text)
	}
	head := clip.Prefix(text, sampleBytesMax/2)
	tail := text[len(text)-sampleBytesMax/2:]
	for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	read := int64(len(head) + len(tail))
	return (Count(head) + Count(tail)) * int64(len(text)) / read
}

// pieces cuts text inside runs of one class (space or not) that are too long.
func pieces(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		start, run, space := 0, 0, false
		for i, r := range text {
			if s := unicode.IsSpace(r); s != space {
				run, space = i, s
			}
			if i-run < runBytesMax {
				continue
			}
			if !yield(text[start:i]) {
				return
			}
			start, run = i, i
		}
		yield(text[start:])
	}
}

// Cut shortens text to at most limit tokens.
func Cut(text string, limit int64) string {
	low, high := 0, len(text)
	for low < high {
		mid := (low + high + 1) / 2
		if Count(clip.Prefix(text, mid)) <= limit {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return clip.Prefix(text, low)
}
