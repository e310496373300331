package sim

import (
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
)

// actor is one address: its log, the shells that drive it, and the shadow that
// reads the log as it grows.
type actor struct {
	addr      mailbox.Address
	id        spec.ID
	log       []mailbox.Message
	shells    []*shell
	lease     uint64
	starts    uint64
	born      int64
	slow      int64 // until then no node starts a shell
	shadow    shadowReader
	restarted bool // see restartEndedActor
	damaged   bool // its log was damaged, or garbage was forged in its name: many invariants no longer hold
	closed    bool
	reopened  bool            // … and a message was sent to it since
	forged    map[string]bool // entries of its log that no actor wrote, by their bytes
}

func (a *actor) noteForged(data []byte) {
	if a.forged == nil {
		a.forged = map[string]bool{}
	}
	a.forged[string(data)] = true
}

// newestPlace is the place of the newest entry.
func (a *actor) newestPlace() uint64 {
	if len(a.log) == 0 {
		return 0
	}
	return a.log[len(a.log)-1].Place
}

// entriesBetween is the log after a place, up to another.
func (a *actor) entriesBetween(after, through uint64) []mailbox.Message {
	var part []mailbox.Message
	for _, m := range a.log {
		if m.Place > after && m.Place <= through {
			part = append(part, m)
		}
	}
	return part
}

// hasTask reports whether the log up to a place has the task of the agent.
func (a *actor) hasTask(through uint64) bool {
	return slices.ContainsFunc(a.entriesBetween(0, through), func(m mailbox.Message) bool {
		e, err := mailbox.Decode(m.Data)
		return err == nil && slices.ContainsFunc(e.Items, func(t mailbox.Item) bool { return t.Kind == (agent.Submitted{}).Kind() })
	})
}

// An actor that waits has no shell (PROTOCOL P19). A node decides from the newest entry of a log and its length
// alone whether the actor needs a shell: so every simulated takeover is by a
// node that has read no more than that.

// readStanding returns the standing of an actor without a shell, read from its log alone.
func (a *actor) readStanding() activation.Standing {
	if len(a.log) == 0 {
		return activation.Standing{}
	}
	return activation.ReadStanding(a.addr, a.log[len(a.log)-1].Data, uint64(len(a.log)))
}

// needsShell reports whether an actor without a shell gets one: its log does not say that
// it waits, or what it waits for is due; or its log was damaged while it waited, and
// some node checks it eventually.
func (a *actor) needsShell(now int64) bool {
	st := a.readStanding()
	return !st.Rests || st.Due != 0 && st.Due <= now || a.damaged
}

// dueTimer is the timer of a passivated actor.
func (a *actor) dueTimer() *shellTimer {
	if a.closed || slices.ContainsFunc(a.shells, (*shell).isActive) {
		return nil
	}
	st := a.readStanding()
	if !st.Rests || st.Due == 0 {
		return nil
	}
	t := &shellTimer{name: "retry", due: st.Due}
	if w := a.shadow.agent; w != nil {
		l := w.State.Task.Limits
		if st.Due == w.State.Began+l.SoftMS || st.Due == w.State.Began+l.HardMS {
			t.name = "soft"
		}
	}
	return t
}

// awaitsRetry reports whether a passivated actor waits for its next attempt at something, and will not miss it.
func (a *actor) awaitsRetry() bool {
	w, t := a.shadow.agent, a.dueTimer()
	if w == nil || t == nil {
		return false
	}
	return w.State.Suspended.Why == agent.AwaitsRetry && t.due <= w.State.Suspended.Due ||
		slices.ContainsFunc(w.State.Calls, func(c agent.Call) bool { return c.Stage == agent.Retrying && t.due <= c.Due })
}

// isIdle reports whether the agent waits for children in the background.
func (a *actor) isIdle() bool { return a.shadow.agent != nil && isIdle(&a.shadow.agent.State) }
