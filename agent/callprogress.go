package agent

import (
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/model"
)

// Stage is how far a call is.
type Stage string

// Stages of a call.
const (
	Pending  Stage = "pending"  // nothing was done
	Gated    Stage = "gated"    // hooks before it, or after its failure or result, are asked
	Retrying Stage = "retrying" // a transient failure waits for its next attempt
	Starting Stage = "starting" // Begin was issued, Started was not read back yet
	Running  Stage = "running"  // it may have begun
	Ended    Stage = "ended"    // its result is known
)

// callProgress is how far a call is: its stage and its attempts. From it, and from the harm that another attempt may
// do, follows what is known of an attempt that a crash has interrupted.
type callProgress struct {
	Class      model.Class
	Stage      Stage
	Attempt    int    // that has begun last, from 1
	Tries      int    // attempts that failed transiently
	Due        int64  // stamp of the next attempt, while Retrying
	Activation string // the activation that began it
}

// runsParallel reports whether the call may run in parallel with others.
func (p callProgress) runsParallel() bool { return p.Class == model.Read }

// needsRecord reports whether the log holds the beginning of the call before the call begins.
func (p callProgress) needsRecord() bool { return p.Class != model.Read }

// isLost reports whether an attempt of the call has begun and its outcome is unknown.
func (p callProgress) isLost() bool { return p.Class != model.Read && p.Attempt > p.Tries }

// isLostBefore reports whether the next attempt of a call has not begun but an earlier attempt is lost.
func (p callProgress) isLostBefore() bool {
	switch p.Stage {
	case Starting:
		p.Attempt--
	case Pending, Retrying:
	default:
		return false
	}
	return p.isLost()
}

// notRunText describes a call that ends before it begins.
func (p callProgress) notRunText() string {
	if p.isLost() {
		return "not run again"
	}
	return "never started"
}

// notRunAs says of a call that ends without another attempt whether an attempt of it was lost, or none has begun.
func (p callProgress) notRunAs() event.Synthetic {
	if p.isLost() {
		return event.Killed
	}
	return event.NeverStarted
}
