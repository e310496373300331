package investigator

import (
	"hash/maphash"
	"strings"
	"sync"

	"github.com/troupe-run/troupe/budget/tokens"
	"github.com/troupe-run/troupe/internal/estimate"
	"github.com/troupe-run/troupe/model"
)

// countedMax is how many counts one half of the memory holds.
const countedMax = 2048

// tokenCounter counts tokens and remembers counts, since a transcript is counted
// again on every turn. Safe for concurrent use.
type tokenCounter struct {
	seed       maphash.Seed
	mu         sync.Mutex
	young, old map[countedText]int64
}

// countedText identifies a text without holding it, so that the cache does not keep whole
// transcripts alive. A collision would cost a wrong count, nothing else.
type countedText struct {
	hash   uint64
	length int
}

func newTokenCounter() *tokenCounter {
	return &tokenCounter{seed: maphash.MakeSeed(), young: map[countedText]int64{}}
}

// countPrompt counts everything that a request sends.
func (c *tokenCounter) countPrompt(req model.Request) (int64, error) {
	if err := tokens.Load(); err != nil {
		return 0, err
	}
	n := c.count(req.System) + c.count(req.Dynamic)
	for _, t := range req.Tools {
		n += estimate.MessageTokens + c.count(t.Name) + c.count(t.Description) + c.count(t.Schema)
	}
	for _, m := range req.Messages {
		if m.Tombstone {
			continue
		}
		n += estimate.MessageTokens + c.count(m.Text)
		for _, call := range m.Calls {
			n += estimate.MessageTokens + c.count(call.Name) + c.count(call.Args)
		}
		for _, r := range m.Results {
			n += estimate.MessageTokens + c.count(r.Text)
		}
	}
	return n, nil
}

// count is the number of tokens of text.
func (c *tokenCounter) count(text string) int64 {
	if text == "" {
		return 0
	}
	key := countedText{maphash.String(c.seed, text), len(text)}
	c.mu.Lock()
	n, ok := c.young[key]
	if !ok {
		n, ok = c.old[key]
	}
	c.mu.Unlock()
	if ok {
		return n
	}
	n = tokens.Count(text)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.young) >= countedMax {
		c.young, c.old = map[countedText]int64{}, c.young
	}
	c.young[key] = n
	return n
}

// cutText shortens text to at most limit tokens: to whole lines and a mark, if the first line fits.
func (c *tokenCounter) cutText(text string, limit int64) string {
	if c.count(text) <= limit {
		return text
	}
	const mark = "\n…"
	short := tokens.Cut(text, max(limit-tokens.Count(mark), 0))
	if end := strings.LastIndexByte(short, '\n'); end > 0 {
		return short[:end] + mark
	}
	return tokens.Cut(text, limit)
}
