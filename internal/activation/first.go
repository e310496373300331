package activation

import (
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// The kinds that may begin a log, by sender (PROTOCOL P26). A tombstone is the only own entry
// that may begin a log. If a client steers a run as soon as it is accepted, the steering may
// overtake the task: see checkFirst. A fork puts another model and its
// mark before the task.
var (
	// from the supervisor
	taskKinds = []string{agent.Submitted{}.Kind(), agent.Recalled{}.Kind(), agent.Canceled{}.Kind()}
	// from a client, to an agent
	historyKinds = []string{agent.Recalled{}.Kind(), agent.Canceled{}.Kind(), agent.Steered{}.Kind(), agent.ModelSet{}.Kind(), agent.ContextSet{}.Kind()}
	// from a client, to a supervisor
	runKinds = []string{supervisor.Opened{}.Kind(), agent.Canceled{}.Kind()}
)

// checkFirst reports an entry that cannot be the first of its log, or the first from the
// agent's supervisor: a supervisor's first message is the task, or one that may overtake it.
// So if a log lost every entry before a client's steering, the next message of its supervisor
// reveals the loss.
func (l *LogReader) checkFirst(e mailbox.Entry) error {
	bySuper := e.From.Agent() == mailbox.Super && e.From.Run() == l.Addr.Run() && e.From != l.Addr
	first := bySuper && !l.heardSupervisor
	l.heardSupervisor = l.heardSupervisor || bySuper
	if l.N == 1 || first {
		return l.checkHead(e)
	}
	return nil
}

// checkHead reports a log that has lost its first entries: an actor is first activated only by
// its task, its run, an imported history, or a cancel or steering that overtook them.
func (l *LogReader) checkHead(e mailbox.Entry) error {
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
	if slices.Contains(allowed, kind) || e.From == "" && !super && isFirstMark(e) {
		return nil
	}
	return fmt.Errorf("%w: %s begins with %q of %q, so its first entries are lost", ErrDamaged, l.Addr, kind, e.From)
}

// isFirstMark reports whether an entry is the mark that a fork puts before the task. Any
// other mark has a task before it.
func isFirstMark(e mailbox.Entry) bool {
	var f agent.Forked
	return len(e.Items) > 0 && e.Items[0].Kind == f.Kind() && mailbox.Unmarshal(e.Items[0].Body, &f) == nil && f.First
}
