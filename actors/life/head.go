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
// accepted may overtake the task; a log that lost all before such a steering is not
// recognized by its first entry.
var (
	taskKinds    = []string{agent.Submitted{}.Kind(), agent.Recalled{}.Kind(), agent.Canceled{}.Kind()} // from the supervisor
	historyKinds = []string{agent.Recalled{}.Kind(), agent.Canceled{}.Kind(), agent.Steered{}.Kind()}   // from a client, to an agent
	runKinds     = []string{supervisor.Opened{}.Kind(), agent.Canceled{}.Kind()}                        // from a client, to a supervisor
)

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
