package redact

import (
	"crypto/sha256"
	"encoding/binary"
	"runtime"
	"slices"
	"strings"
	"sync"
	"weak"

	"github.com/troupe-run/troupe/internal/multimatch"
)

// maskerCache builds one Masker for each set of values. The automaton of a set takes some hundred
// kilobytes, and the set of tools of every agent has a Masker. A Masker that is no longer used is
// freed.
type maskerCache struct {
	compile func([]multimatch.Word) *multimatch.WordSet

	mu    sync.Mutex
	known map[maskerKey]weak.Pointer[Masker]
}

// maskerKey is the hash of a set of values, so that the cache holds no secret.
type maskerKey [sha256.Size]byte

func newMaskerCache(compile func([]multimatch.Word) *multimatch.WordSet) *maskerCache {
	return &maskerCache{compile: compile, known: map[maskerKey]weak.Pointer[Masker]{}}
}

var sharedMaskers = newMaskerCache(multimatch.New)

// maskerOf returns the Masker of a set of values. Callers that ask for the same set at once wait
// for the one that builds it.
func (c *maskerCache) maskerOf(values []string) *Masker {
	key := keyOf(values)
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.known[key].Value(); m != nil {
		return m
	}
	m := c.buildMasker(values)
	c.known[key] = weak.Make(m)
	runtime.AddCleanup(m, c.forget, key)
	return m
}

// forget removes a Masker that was freed, unless the set has a new one.
func (c *maskerCache) forget(key maskerKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known[key].Value() == nil {
		delete(c.known, key)
	}
}

func keyOf(values []string) (key maskerKey) {
	h := sha256.New()
	for _, v := range values {
		h.Write(binary.AppendUvarint(nil, uint64(len(v))))
		h.Write([]byte(v))
	}
	h.Sum(key[:0])
	return key
}

func (c *maskerCache) buildMasker(values []string) *Masker {
	m := &Masker{}
	for _, v := range values {
		m.values = append(m.values, encodedForms(v)...)
	}
	slices.SortFunc(m.values, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	m.values = slices.Compact(m.values)
	words := slices.Clone(ruleWords)
	for _, v := range m.values {
		words = append(words, multimatch.Word{Text: v, Tag: tagValue})
	}
	m.words = c.compile(words)
	if len(m.values) > 0 {
		m.longest = len(m.values[0]) - 1
	}
	return m
}
