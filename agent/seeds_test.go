package agent_test

import (
	"flag"
	"iter"
)

// flagEvery thins out the random walks of an ordinary `go test`, but for those that must reach
// rare places; `make exhaustive` plays all.
var flagEvery = flag.Uint64("agent.every", 3, "of the seeds of random walks, play every nth; an odd number, because some walks differ by parity")

// sampledSeeds are those of n that are played.
func sampledSeeds(n uint64) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for seed := uint64(0); seed < n; seed += max(*flagEvery, 1) {
			if !yield(seed) {
				return
			}
		}
	}
}
