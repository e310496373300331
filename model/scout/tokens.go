package scout

import (
	"errors"
	"hash/maphash"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/cohere-ai/tokenizer"

	"github.com/troupe-run/troupe/model"
)

// ErrVocabulary is returned when the embedded vocabulary cannot be loaded.
var ErrVocabulary = errors.New("scout: no token vocabulary")

const (
	vocabulary = "coheretext-50k"
	// messageOverhead is what a message, a tool schema or a call counts beside its text.
	messageOverhead = 4
	// runBytesMax is the longest run without a break that is given to the
	// encoder in one piece: its time grows with the square of it.
	runBytesMax = 256
	// countedMax is how many counts one half of the memory holds.
	countedMax = 2048
)

// encoder is shared by all clients: loading it takes a while and it is only read.
var encoder = sync.OnceValues(func() (*tokenizer.Encoder, error) {
	e, err := tokenizer.NewFromPrebuilt(vocabulary)
	if err != nil {
		return nil, errors.Join(ErrVocabulary, err)
	}
	return e, nil
})

// counter counts tokens and remembers counts, since a transcript is counted
// again on every turn. Safe for concurrent use.
type counter struct {
	seed       maphash.Seed
	mu         sync.Mutex
	young, old map[counted]int64
}

// counted stands for a text, so that the memory does not keep whole transcripts
// alive. A collision would cost a wrong count, nothing else.
type counted struct {
	hash   uint64
	length int
}

func newCounter() *counter {
	return &counter{seed: maphash.MakeSeed(), young: map[counted]int64{}}
}

// prompt counts everything that a request sends.
func (c *counter) prompt(req model.Request) (int64, error) {
	if _, err := encoder(); err != nil {
		return 0, err
	}
	n := c.count(req.System)
	for _, t := range req.Tools {
		n += messageOverhead + c.count(t.Name) + c.count(t.Description) + c.count(t.Schema)
	}
	for _, m := range req.Messages {
		if m.Tombstone {
			continue
		}
		n += messageOverhead + c.count(m.Text)
		for _, call := range m.Calls {
			n += messageOverhead + c.count(call.Name) + c.count(call.Args)
		}
		for _, r := range m.Results {
			n += messageOverhead + c.count(r.Text)
		}
	}
	return n, nil
}

// count is the number of tokens of text. It is exact up to the cuts in runs
// longer than runBytesMax, which can only raise it.
func (c *counter) count(text string) int64 {
	if text == "" {
		return 0
	}
	key := counted{maphash.String(c.seed, text), len(text)}
	c.mu.Lock()
	n, ok := c.young[key]
	if !ok {
		n, ok = c.old[key]
	}
	c.mu.Unlock()
	if ok {
		return n
	}
	n = c.measure(text)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.young) >= countedMax {
		c.young, c.old = map[counted]int64{}, c.young
	}
	c.young[key] = n
	return n
}

func (c *counter) measure(text string) int64 {
	e, err := encoder()
	if err != nil {
		return int64(len(text)) // a byte-level vocabulary never needs more
	}
	var n int64
	for piece := range pieces(text) {
		tokens, _ := e.Encode(piece)
		n += int64(len(tokens))
	}
	return n
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

// cut shortens text to at most limit tokens.
func (c *counter) cut(text string, limit int64) string {
	if c.count(text) <= limit {
		return text
	}
	low, high := 0, len(text)
	for low < high {
		mid := (low + high + 1) / 2
		if c.measure(wholeRunes(text, mid)) <= limit {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return wholeRunes(text, low)
}

func wholeRunes(text string, n int) string {
	for n > 0 && n < len(text) && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
