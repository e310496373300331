package sim

import (
	"fmt"
)

// environment is what all parts of the simulator share: the plan of the seed, chance,
// the time, the script, and the places that the seed has reached.
type environment struct {
	dice
	seedPlan
	seed        int64
	now         int64
	step        int
	faultsEnded bool // the processes behave and all messages arrive from here on
	tracing     bool
	records     bool
	isTeam      bool // see isForming
	script      []string
	reach       reachCounts
}

// fail ends the simulation: what has happened breaks an invariant.
func (e *environment) fail(of invariant, format string, args ...any) {
	panic(violation{string(of) + ": " + fmt.Sprintf(format, args...)})
}

func (e *environment) traceLine(format string, args ...any) {
	if e.tracing {
		e.script = append(e.script, fmt.Sprintf("%4d %6d ", e.step, e.now)+fmt.Sprintf(format, args...))
	}
}

// violation is a broken invariant, on its way out of the simulator.
type violation struct{ text string }
