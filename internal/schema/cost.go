package schema

import (
	"errors"
	"fmt"
)

// StepsMax bounds the work of checking one value against one schema. A step is about
// a microsecond: one schema applied to one value. The same schema is applied to the
// same value once, however many paths lead there; each later path costs one step.
//
// The bound decides in the loop, so every replay must reach the same result: steps are
// counted from the schema and the value alone, in one order, without a clock. A change
// of this number, or of how steps are counted, changes what recorded runs decide, and
// needs a new mailbox.Form.
const StepsMax = 1_000_000

// DepthMax bounds how many schemas may be applied within each other, which bounds the stack
// of a check. A value of encoding/json is at most 10,000 deep.
const DepthMax = 50_000

// TextBytesMax bounds the text of an error.
const TextBytesMax = 4 << 10

// ErrCost: a value and a schema that are too much work together.
var ErrCost = errors.New("schema: too much work")

func costError(what string) error {
	return fmt.Errorf("%w: checking %s may take more than %d steps; make the value smaller, or the schema simpler: fewer alternatives (anyOf, oneOf, $ref) within alternatives, shorter patterns", ErrCost, what, StepsMax)
}

// How much of each counted size one step covers.
const (
	stepEntries = 16 // names of a map that are looked up
	stepBytes   = 16 // bytes of a value that are compared or printed
	stepNames   = 1  // names that may be missing
	stepsNumber = 24 // of the bounds of a number, which are compared exactly
	stepMatched = 32 // instructions of a pattern at one byte
)

// spendSteps subtracts steps from the remaining budget. Once the budget is spent, no more schemas
// are applied.
func (c *validation) spendSteps(steps int) bool {
	if c.spent = c.spent || steps > c.stepsLeft; c.spent {
		return false
	}
	c.stepsLeft -= steps
	return true
}
