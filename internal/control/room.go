package control

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/mailbox"
)

// roomFresh is how long a measurement of the room in the logs and the index counts. It costs one
// request per stream, far more than the check of one run, and what runs write in a second is small
// against the room that is kept for their ends.
const roomFresh = time.Second

// admission refuses requests of new runs for which there is no room, or whose id is taken.
type admission struct {
	cfg    *Config
	lookup *lookup
	room   storeRoom
}

// storeRoom is the newest measurement of the room in the logs and the index that found room. A
// measurement that finds no room is not kept: the next request may come after a prune.
type storeRoom struct {
	mu sync.Mutex // also makes requests wait for a measurement instead of making their own
	at time.Time
}

// measuredRoom is a store whose room is measured; most 0 means no limit.
type measuredRoom interface {
	Room(ctx context.Context) (used, most uint64, err error)
}

// findFull returns the store that is too full for another run; "": every store has room. It measures unless a recent
// measurement has found room.
func (r *storeRoom) findFull(ctx context.Context, logs, index measuredRoom) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.at) < roomFresh {
		return ""
	}
	for _, store := range []struct {
		name string
		measuredRoom
	}{{"the logs are", logs}, {"the index of runs is", index}} {
		used, most, err := store.Room(ctx)
		if err != nil {
			return "" // the append of the run reports the error
		}
		if most > 0 && used*100 > most*mailbox.RoomPercent {
			return store.name
		}
	}
	r.at = time.Now()
	return ""
}

// checkRoom refuses new runs if the logs or the index are too full for them to end.
func (c *admission) checkRoom(ctx context.Context) error {
	if i := c.cfg.logHealth(); i != nil {
		return refuseUnwritable(i)
	}
	if full := c.room.findFull(ctx, c.cfg.Post, c.cfg.Runs); full != "" {
		if c.cfg.roomWanted != nil {
			c.cfg.roomWanted()
		}
		return &client.Error{Code: client.CodeLimit, Text: full + " too full for another run", Hint: refuse.RoomHint}
	}
	return nil
}

// chooseAnotherID is the hint to a request that is only for a new run.
const chooseAnotherID = "choose another run_id"

func errRunExists(run, hint string) error {
	return &client.Error{Code: client.CodeConflict, Text: fmt.Sprintf("run %s exists already", run), Hint: hint}
}

// checkUnopened refuses requests that may only come before a run exists.
func (c *admission) checkUnopened(ctx context.Context, run string) error {
	_, taken, err := c.lookup.findTaken(ctx, run)
	switch {
	case err != nil:
		return err
	case taken:
		return errRunExists(run, chooseAnotherID)
	}
	return c.checkRoom(ctx)
}
