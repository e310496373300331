package cluster

import (
	"math/bits"

	"github.com/troupe-run/troupe/mailbox"
)

// wokenLogs are the logs whose actors sweeps have woken, as they were then. An actor that wrote nothing
// since has nothing to do, such as an agent that was steered after its end, or it cannot start: it is
// woken again after 1, 2, 4, … sweeps.
type wokenLogs struct {
	last, seen map[mailbox.Address]wokenLog
}

type wokenLog struct {
	entries uint64
	sweeps  uint // that found the log as it is
}

// isDue reports whether this sweep wakes the actor of a log.
func (w *wokenLogs) isDue(d mailbox.Head) bool {
	if w.seen == nil {
		w.seen = map[mailbox.Address]wokenLog{}
	}
	l := wokenLog{entries: d.Entries, sweeps: 1}
	if was, ok := w.last[d.To]; ok && was.entries == d.Entries {
		l.sweeps += was.sweeps
	}
	w.seen[d.To] = l
	return bits.OnesCount(l.sweeps) == 1
}

// forgetOthers ends a sweep: the logs that it has not seen are forgotten.
func (w *wokenLogs) forgetOthers() { w.last, w.seen = w.seen, nil }
