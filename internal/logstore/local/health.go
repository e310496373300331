package local

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-run/troupe/mailbox"
)

// defaultStallAfter is how long appends may be refused for want of room before Stalled is called.
const defaultStallAfter = 5 * time.Second

// health reports when appends cannot be stored, and when they can again.
type health struct {
	after time.Duration
	tell  func(mailbox.Stall)
	told  atomic.Bool // the newest report is a stall

	mu     sync.Mutex // also held while tell is called, so that reports come in order
	failed time.Time  // since when writes fail; zero: they do not
	// full and refused are the times of the first and the last append that was refused for want
	// of room, in a row of refusals no further apart than after.
	full, refused time.Time
	// rest looks again when nothing was refused for a while. Without it, a node with nothing to
	// write would refuse new runs for ever.
	rest   *time.Timer
	closed bool
}

// noteFailed reports at once that the write-ahead log cannot be written.
func (h *health) noteFailed(to mailbox.Address, waiting int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.tell == nil || h.closed || !h.failed.IsZero() {
		return
	}
	h.failed = time.Now()
	h.told.Store(true)
	h.tell(mailbox.Stall{Since: h.failed, Waiting: waiting, Subject: string(to), Why: err.Error(), Err: err})
}

// noteStored reports that a stall is over.
func (h *health) noteStored() {
	if !h.told.Load() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failed = time.Time{}
	h.endStall()
	if h.told.Load() && !h.closed { // appends were refused meanwhile: nothing may be written that would look again
		h.armRest()
	}
}

// armRest sets when lookAgain is called. mu is held.
func (h *health) armRest() {
	if h.rest == nil {
		h.rest = time.AfterFunc(h.after, h.lookAgain)
		return
	}
	h.rest.Reset(h.after)
}

// noteRefused reports, once, that appends were refused for want of room for a while.
func (h *health) noteRefused(to mailbox.Address, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	if now.Sub(h.refused) > h.after {
		h.full = now
	}
	h.refused = now
	if h.tell == nil || h.closed || h.told.Load() || now.Sub(h.full) < h.after {
		return
	}
	h.told.Store(true)
	h.armRest()
	h.tell(mailbox.Stall{Since: h.full, Subject: string(to), Why: err.Error()})
}

// lookAgain ends a stall if nothing was refused lately.
func (h *health) lookAgain() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.endStall()
	if h.told.Load() && !h.closed {
		h.armRest()
	}
}

// endStall reports that a stall is over, unless the write-ahead log cannot be written, or appends were
// refused lately. mu is held.
func (h *health) endStall() {
	if h.closed || !h.told.Load() || !h.failed.IsZero() || time.Since(h.refused) <= h.after {
		return
	}
	h.told.Store(false)
	h.tell(mailbox.Stall{})
}

func (h *health) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	if h.rest != nil {
		h.rest.Stop()
	}
}

// damageReportsMax is how many damaged logs are reported by name.
const damageReportsMax = 1024

// damageLog reports damaged logs, each once.
type damageLog struct {
	logger *slog.Logger
	mu     sync.Mutex
	seen   map[mailbox.Address]bool
}

func (d *damageLog) report(at mailbox.Address, place uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.seen[at] || len(d.seen) >= damageReportsMax {
		return
	}
	if d.seen == nil {
		d.seen = map[mailbox.Address]bool{}
	}
	d.seen[at] = true
	d.logger.Error("a log is damaged: an entry is not what was written, and is read without data", "log", at, "place", place)
}
