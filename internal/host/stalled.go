package host

import (
	"sync"
	"time"

	"github.com/troupe-run/troupe/gateway"
	"github.com/troupe-run/troupe/mailbox/jetstream"
)

// stalled tells the operator when nobody stores the entries of this node, and when
// somebody does again. Nothing is decided by it: what waits for its entry waits.
func (h *Host) stalled() func(jetstream.Stall) {
	var mu sync.Mutex
	var since time.Time
	return func(s jetstream.Stall) {
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		if s.Since.IsZero() {
			took := now.Sub(since)
			h.cfg.Logger.Info("the logs can be written again", "after", took)
			h.publish(gateway.Journal(h.cfg.Name, true, gateway.JournalState{WaitedMS: took.Milliseconds()}, now))
			return
		}
		since = s.Since
		h.cfg.Logger.Error("journal_unavailable: the logs cannot be written; entries wait, and nothing is begun without them",
			"waited", now.Sub(s.Since), "waiting", s.Waiting, "first", s.Subject, "why", s.Why)
		h.publish(gateway.Journal(h.cfg.Name, false, gateway.JournalState{WaitedMS: now.Sub(s.Since).Milliseconds(), Waiting: s.Waiting, Why: s.Why}, now))
	}
}
