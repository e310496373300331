package activation

import (
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/mailbox"
)

// Stage is how far an activation has come. From Following on, the Phase of its reader
// says whether it is active, superseded or closed.
type Stage string

// Stages.
const (
	Claiming    Stage = "claiming"    // its claim is being appended, or the log up to it is being read
	Following   Stage = "following"   // it has replayed the log and reads on
	Draining    Stage = "draining"    // it decides nothing more, and waits for the work that it began (PROTOCOL P3)
	Passivating Stage = "passivating" // the same, because it has nothing to do (PROTOCOL P19)
)

// State is one activation of an actor as a value: what it has read of its log, what it has
// under way, and what it waits for. Only Step changes it. A State and its successors share
// the reader and the machine behind it, so a State is stepped once.
type State struct {
	Reader *LogReader
	Agent  *Agent      // one of these two
	Super  *Supervisor // is the machine
	Node   string      // the name that its claims carry
	// StartsMax is how many activations in a row may fail to get through the log; at one more,
	// the actor is given up. New sets it.
	StartsMax int

	stage           Stage
	toDrain         bool              // it drains once it has replayed the log
	ahead           []mailbox.Message // arrived by the tail before the replay
	through         uint64            // the tail detached it during the replay; its log extends at least to this place
	arrived         int               // entries that arrived through the tail and were not reported to the router
	last            uint64            // place of the last entry read
	unpublished     []replayedEvents  // of entries read while replaying
	delayTimerRuns  bool              // messages are held back, and the timer that ends that runs
	closing         bool              // Closed is being appended
	marked          uint64            // how much was read when the last Checkpoint was appended
	resultPublished bool              // the result of the run was published
	shown           shownState        // of the run, when it was last published
	answers         pendingAnswers    // of a closed log
	unread          []string          // ids of own entries that were appended and not read back
	reported        bool              // the router knows that this activation decides nothing more
	final           string            // id of the Released that was appended
	missed          bool              // an entry arrived while draining that was not stepped
	due             int64             // when to reactivate it after it has passivated

	postponed   []any  // effects that wait for the lease
	proof       string // id of the entry after whose return they begin
	provenLease uint64 // under which this activation was last seen to be the current one
	proofLease  uint64 // the lease at the time when proof was sent

	work    []string        // keys of the work under way
	awaited map[string]bool // timers of members that were given more time
}

// replayedEvents are the events of one entry that was read while replaying.
type replayedEvents struct {
	n      uint64
	stamp  int64
	events []event.Event
}

// New makes an activation that has done nothing yet: the first fact that Step takes is
// Activate. Start is a nonce, epoch the fencing token that the activation tries to claim.
// With watch, its steps make events for observers.
func New(at mailbox.Address, start string, epoch mailbox.Epoch, node string, watch bool) State {
	s := State{Node: node, StartsMax: StartsMax, stage: Claiming, provenLease: epoch.Lease}
	var machine Machine
	if at.Agent() == mailbox.Super {
		s.Super = &Supervisor{Addr: at, Watch: watch}
		machine = s.Super
	} else {
		s.Agent = &Agent{Addr: at, Watch: watch}
		machine = s.Agent
	}
	s.Reader = NewLogReader(at, start, epoch, machine)
	return s
}

// Stage returns how far the activation has come.
func (s State) Stage() Stage { return s.stage }

// mayBegin reports whether the activation would begin an effect now, under this lease.
func (s State) mayBegin(lease uint64, leaseHeld bool) bool {
	return leaseHeld && lease == s.provenLease
}

// WouldRead reports whether the activation would read an entry at once and has not read it
// before.
func (s State) WouldRead(m mailbox.Message) bool { return s.stage == Following && m.Place > s.last }

// HasUnread reports whether the activation appended own entries that it has not read back.
func (s State) HasUnread() bool { return len(s.unread) > 0 }

// UnseenPool returns the pool of the member whose first sign of life a timer awaits.
func (s State) UnseenPool(timer string) (pool string, unseen bool) {
	if s.Super == nil {
		return "", false
	}
	return s.Super.State.Unseen(timer)
}

// OwnResult makes a result of this activation that may become an own entry.
func (s State) OwnResult(kind, key string, body any) OwnResult {
	return OwnResult{At: s.Reader.Addr, Epoch: s.Reader.Epoch, Start: s.Reader.Start, Kind: kind, Key: key, Body: body}
}

// idOf names the entry of a result.
func (s State) idOf(o OwnResult) string { return s.Reader.ID(o.Epoch, o.Start, o.Kind, o.Key) }

// hooksRunning reports whether hooks are still running whose answers nothing waits for. The log
// closes only after they end, so that the provider's last reply or error reaches the hooks
// that asked for it.
func (s State) hooksRunning() bool {
	return slices.ContainsFunc(s.work, func(key string) bool { return strings.HasPrefix(key, hookPrefix) })
}

// withID returns a list with one more string, withoutID returns a list with one less; neither
// changes its argument.
func withID(list []string, id string) []string {
	if slices.Contains(list, id) {
		return list
	}
	return append(list[:len(list):len(list)], id)
}

func withoutID(list []string, id string) []string {
	i := slices.Index(list, id)
	if i < 0 {
		return list
	}
	if len(list) == 1 {
		return nil
	}
	return slices.Concat(list[:i], list[i+1:])
}

// IsPostponing reports whether the activation postpones effects until the lease holds.
func (s State) IsPostponing() bool { return len(s.postponed) > 0 }
