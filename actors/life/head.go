package life

import (
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// First entries of a log, by who writes them (PROTOCOL P26). A tombstone is the
// one own entry that may begin a log. A client that steers a run as soon as it is
// accepted may overtake the task: see checkFirst.
var (
	taskKinds    = []string{agent.Submitted{}.Kind(), agent.Recalled{}.Kind(), agent.Canceled{}.Kind()} // from the supervisor
	historyKinds = []string{agent.Recalled{}.Kind(), agent.Canceled{}.Kind(), agent.Steered{}.Kind()}   // from a client, to an agent
	runKinds     = []string{supervisor.Opened{}.Kind(), agent.Canceled{}.Kind()}                        // from a client, to a supervisor
)

// checkFirst reports an entry that cannot be the first of its log, or of the agent's
// supervisor: what that says first is the task, or what may overtake it. So a log that
// lost all before a client's steering is recognized once its supervisor speaks to it.
func (l *Life) checkFirst(e mailbox.Entry) error {
	bySuper := e.From.Agent() == mailbox.Super && e.From.Run() == l.Addr.Run() && e.From != l.Addr
	first := bySuper && !l.tasked
	l.tasked = l.tasked || bySuper
	if l.N == 1 || first {
		return l.checkHead(e)
	}
	return nil
}

// checkHead reports a log that has lost its first entries: nothing else wakes an
// actor than its task, its run, an earlier history, or a cancel or steering that overtook them.
func (l *Life) checkHead(e mailbox.Entry) error {
	kind := ""
	if len(e.Items) > 0 {
		kind = e.Items[0].Kind
	}
	super := l.Addr.Agent() == mailbox.Super
	var allowed []string
	switch {
	case e.From == l.Addr:
		allowed = []string{agent.Closed{}.Kind()}
	case e.From == "" && super:
		allowed = runKinds
	case e.From == "":
		allowed = historyKinds
	case !super && e.From.Run() == l.Addr.Run() && e.From.Agent() == mailbox.Super:
		allowed = taskKinds
	}
	if slices.Contains(allowed, kind) {
		return nil
	}
	return fmt.Errorf("%w: %s begins with %q of %q, so its first entries are lost", ErrDamaged, l.Addr, kind, e.From)
}
