package control

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/troupe-run/troupe/mailbox"
)

// measuredStore counts how often its room is measured.
type measuredStore struct {
	mailbox.Store
	percent uint64
	count   int
}

func (c *measuredStore) Room(context.Context) (used, most uint64, err error) {
	c.count++
	return c.percent, 100, nil
}

// TestTheRoomOfTheLogsIsMeasuredOnceASecond: many runs that are opened together share one measurement,
// and a refusal is measured anew each time.
func TestTheRoomOfTheLogsIsMeasuredOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs := &measuredStore{percent: 10}
		var room logRoom
		for range 1000 {
			if room.isFull(t.Context(), logs) {
				t.Fatal("full at 10 %")
			}
		}
		if logs.count != 1 {
			t.Errorf("1,000 runs measured the room %d times", logs.count)
		}
		<-time.After(roomFresh) // of the bubble
		logs.percent = mailbox.RoomPercent + 1
		for range 3 {
			if !room.isFull(t.Context(), logs) {
				t.Error("not full")
			}
		}
		logs.percent = 10 // a prune
		if room.isFull(t.Context(), logs) {
			t.Error("full after a prune")
		}
		if logs.count != 5 {
			t.Errorf("measured %d times, want 5", logs.count)
		}
	})
}
