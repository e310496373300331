package schema

import (
	"errors"
	"fmt"
)

// StepsMax is how much work the check of one value with one schema may be. A step
// is about a microsecond: one schema applied to one value. The same schema meets the
// same value once, however many ways lead there; later ways are a step each.
//
// The bound decides in the loop, so it comes out alike in every replay: steps are
// counted from the schema and the value alone, in one order, by no clock. Whoever
// changes this number, or how steps are counted, changes what recorded runs decide,
// and gives the loop new rules.
const StepsMax = 1_000_000

// DepthMax is how many schemas may be applied within each other, which bounds the
// stack of a check. A value of encoding/json is at most 10,000 deep.
const DepthMax = 50_000

// TextBytesMax bounds the text of an error.
const TextBytesMax = 4 << 10

// ErrCost: a value and a schema that are too much work together.
var ErrCost = errors.New("schema: too much work")

func costError(what string) error {
	return fmt.Errorf("%w: checking %s may take more than %d steps; make the value smaller, or the schema simpler: fewer alternatives (anyOf, oneOf, $ref) within alternatives, shorter patterns", ErrCost, what, StepsMax)
}

// Costs of one step, in the sizes that are counted.
const (
	stepEntries = 16 // names of a map that are looked up
	stepBytes   = 16 // bytes of a value that are compared or printed
	stepNames   = 1  // names that may be missing
	stepsNumber = 24 // of the bounds of a number, which are compared exactly
	stepMatched = 32 // instructions of a pattern at one byte
)

// pay takes steps from what is left. Once that is nothing, no schema is applied any more.
func (c *check) pay(steps int) bool {
	if c.spent = c.spent || steps > c.left; c.spent {
		return false
	}
	c.left -= steps
	return true
}
