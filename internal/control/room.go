package control

import (
	"context"
	"sync"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/mailbox"
)

// roomFresh is how long a measurement of the room in the logs counts. It costs one request per
// stream, far more than the check of one run, and what runs write in a second is small
// against the room that is kept for their ends.
const roomFresh = time.Second

// logRoom is the newest measurement of the room in the logs that found room. A measurement that
// finds none is not kept: the next request may come after a prune.
type logRoom struct {
	mu sync.Mutex // also makes requests wait for a measurement instead of making their own
	at time.Time
}

// isFull measures unless a recent measurement has found room.
func (r *logRoom) isFull(ctx context.Context, logs mailbox.Store) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.at) < roomFresh {
		return false
	}
	used, most, err := logs.Room(ctx)
	if err != nil {
		return false // the append of the run says what is wrong
	}
	if most > 0 && used*100 > most*mailbox.RoomPercent {
		return true
	}
	r.at = time.Now()
	return false
}

// checkRoom refuses new runs if the logs are too full for them to end.
func (c *opener) checkRoom(ctx context.Context) error {
	if i := c.journalInfo(); i != nil {
		return refuseJournal(i)
	}
	if c.room.isFull(ctx, c.cfg.Post) {
		return &client.Error{Code: client.CodeLimit, Text: "the logs are too full for another run", Hint: "`troupe prune` removes old runs; or give the streams more room"}
	}
	return nil
}
