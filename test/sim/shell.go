package sim

import (
	"slices"

	"github.com/troupe-run/troupe/internal/activation"
)

func (sh *shell) disarmTimer(name string) {
	sh.timers = slices.DeleteFunc(sh.timers, func(t shellTimer) bool { return t.fact == nil && t.name == name })
}

// isCurrent reports whether the log takes the shell for the one that decides.
func (sh *shell) isCurrent() bool {
	st := sh.actor.shadow.agent
	return st != nil && st.State.Activation == sh.start
}

// shell is the part of an actor in one process: an activation, driven by the same Step as
// the shells of package actors, and what its node knows. It carries actions out in the
// world and the logs of the simulator.
type shell struct {
	actor     *actor
	start     string
	lease     uint64
	state     activation.State
	wasActive bool
	frozen    bool
	lost      bool // its node knows that its lease has run out
	mustRead  int  // entries that it must read before it may begin anything: see regainLease
	// Set if, before the entry that it reads now, the shell had read a cancel, had ended, or had
	// postponed effects.
	canceled, ended, postponing bool
	dead                        bool
	timers                      []shellTimer
	inbox                       []any // facts to learn
	learning                    bool

	tail     int                  // entries of the log that the tail has sent, or never will
	detached bool                 // the tail sends nothing
	claim    *activation.ReadLog  // it reads its log
	part     *activation.ReadTail // it reads the entries that the tail did not send
}

// shellTimer is a timer of the machine, or a fact that follows after a pause.
type shellTimer struct {
	name string
	due  int64
	fact any
}

// logReader returns the reader of the activation.
func (sh *shell) logReader() *activation.LogReader { return sh.state.Reader }

// isActive reports whether the shell acts as the holder of the actor.
func (sh *shell) isActive() bool {
	return !sh.dead && !sh.frozen && !sh.lost && sh.logReader().Phase != activation.Superseded
}

// isLeaving reports whether the shell drains or passivates.
func (sh *shell) isLeaving() bool {
	stage := sh.state.Stage()
	return stage == activation.Draining || stage == activation.Passivating
}

// mayRead reports whether there are entries that the shell has not read.
func (sh *shell) mayRead() bool {
	return sh.claim != nil || sh.part != nil || !sh.detached && sh.tail < len(sh.actor.log)
}
