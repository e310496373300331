package redact

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/troupe-run/troupe/internal/multimatch"
)

// countingCache is a cache that counts the automata that it builds.
func countingCache() (c *maskerCache, builds *int) {
	builds = new(int)
	return newMaskerCache(func(words []multimatch.Word) *multimatch.WordSet {
		*builds++
		return multimatch.New(words)
	}), builds
}

// TestASetOfSecretsHasOneAutomaton: each agent of a node asks for a masker, also at once, and one
// automaton is built for each set of values, whatever their order.
func TestASetOfSecretsHasOneAutomaton(t *testing.T) {
	c, builds := countingCache()
	values := []string{"first secret", "second secret"}
	var agents sync.WaitGroup
	maskers := make([]*Masker, 100)
	for i := range maskers {
		agents.Go(func() {
			maskers[i] = c.maskerOf(Config{Values: []string{values[i%2], values[1-i%2], values[0]}}.maskedValues())
		})
	}
	agents.Wait()
	for _, m := range maskers {
		if m != maskers[0] {
			t.Fatal("equal sets have several maskers")
		}
	}
	if *builds != 1 {
		t.Errorf("%d automata were built for one set", *builds)
	}
	none, other := c.maskerOf(nil), c.maskerOf([]string{"first secretsecond secret"})
	if *builds != 3 || none == maskers[0] || other == maskers[0] {
		t.Errorf("%d automata were built for three sets", *builds)
	}
	if text := other.MaskText("a first secret, a second secret"); text != "a first secret, a second secret" {
		t.Errorf("another set masks it: %q", text)
	}
	runtime.KeepAlive(maskers)
	runtime.KeepAlive(none)
}

// TestUnusedMaskerIsFreed: the sets of deleted workspaces do not stay in memory.
func TestUnusedMaskerIsFreed(t *testing.T) {
	c, _ := countingCache()
	for i := range 50 {
		c.maskerOf([]string{fmt.Sprintf("secret number %d", i)})
	}
	for range 1000 { // cleanups run after a collection, on a goroutine of the runtime
		runtime.GC()
		c.mu.Lock()
		n := len(c.known)
		c.mu.Unlock()
		if n == 0 {
			return
		}
		runtime.Gosched()
	}
	t.Error("maskers that are not in use are still known")
}

// BenchmarkNew is what an agent pays for its masker.
func BenchmarkNew(b *testing.B) {
	cfg := Config{Values: []string{"sk-ant-api03-q8Zt3Lw0Xv7Rk2Nb5Hs9Jd4Fg6Pc1My8Tz3A", "another-secret-of-usual-length-0123456789"}}
	kept := New(cfg)
	b.Run("shared", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			New(cfg)
		}
	})
	b.Run("built", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			sharedMaskers.buildMasker(cfg.maskedValues())
		}
	})
	runtime.KeepAlive(kept)
}
