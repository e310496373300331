package wiretest

import (
	"flag"
	"math/rand/v2"
	"slices"
	"testing"
	"unicode/utf8"
)

// Flags of the suite. By default each stream is cut where its events meet and at a
// seeded sample of the other bytes, so that an ordinary `go test` stays short;
// `make exhaustive` cuts each stream after every byte, and floods clients with the shortest
// lines there are.
var (
	flagCuts = flag.Int("wiretest.cuts", 32,
		"how many bytes within the events of a stream it is cut at, beside all places where events meet; below 0: after "+
			"every byte")
	flagCutSeed = flag.Uint64("wiretest.seed", 1, "the seed of the sample of cuts")
)

// nearBoundary is how many bytes on each side of the place where two events meet are
// cut at: an event ends with two newlines, and the next begins with its field's name.
const nearBoundary = 2

// cutPositions lists the positions at which to cut the stream of these events, in order: at both
// ends of each event and next to them, within each multi-byte character, and at a sample of
// the other bytes.
func cutPositions(events []string) []int {
	return samplePositions(events, *flagCuts, *flagCutSeed)
}

// samplePositions is cutPositions with a sample of that size and seed.
func samplePositions(events []string, sample int, seed uint64) []int {
	var chosen []bool
	choose := func(at int) {
		if at >= 0 && at < len(chosen) {
			chosen[at] = true
		}
	}
	size := 0
	for _, e := range events {
		size += len(e)
	}
	chosen = make([]bool, size+1)
	start := 0
	for _, e := range append(slices.Clone(events), "") {
		for near := -nearBoundary; near <= nearBoundary; near++ {
			choose(start + near)
		}
		for i := range len(e) {
			if !utf8.RuneStart(e[i]) {
				choose(start + i)
			}
		}
		start += len(e)
	}
	var rest []int
	for at, taken := range chosen {
		if !taken {
			rest = append(rest, at)
		}
	}
	if sample < 0 {
		sample = len(rest)
	}
	random := rand.New(rand.NewPCG(seed, uint64(size)))
	random.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
	for _, at := range rest[:min(sample, len(rest))] {
		choose(at)
	}
	var positions []int
	for at, taken := range chosen {
		if taken {
			positions = append(positions, at)
		}
	}
	return positions
}

// reportSample names the seed and the flags when a cut has failed the test.
func reportSample(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() && *flagCuts >= 0 {
			t.Logf("cut at a sample: -wiretest.cuts=%d -wiretest.seed=%d; -wiretest.cuts=-1 cuts after every byte", *flagCuts, *flagCutSeed)
		}
	})
}
