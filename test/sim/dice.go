package sim

import (
	"math/rand/v2"
	"strconv"
)

// dice is the only source of chance: everything that a run does follows from
// its seed.
type dice struct{ *rand.Rand }

// The second half of the generator's state; it only has to be the same always.
const diceSalt = 0x9e3779b97f4a7c15

func newDice(seed int64) dice { return dice{rand.New(rand.NewPCG(uint64(seed), diceSalt))} }

// percent is true in p of 100 cases.
func (d dice) percent(p int) bool { return d.IntN(100) < p }

// permille is true in p of 1000 cases.
func (d dice) permille(p int) bool { return d.IntN(1000) < p }

// between is in [low, high].
func (d dice) between(low, high int) int { return low + d.IntN(high-low+1) }

// oneOf picks one.
func oneOf[T any](d dice, list ...T) T { return list[d.IntN(len(list))] }

func itoa(n int) string { return strconv.Itoa(n) }
