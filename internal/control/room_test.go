package control

import (
	"context"
	"strings"
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
		var room storeRoom
		index := &measuredStore{percent: 10}
		for range 1000 {
			if room.findFull(t.Context(), logs, index) != "" {
				t.Fatal("full at 10 %")
			}
		}
		if logs.count != 1 {
			t.Errorf("1,000 runs measured the room %d times", logs.count)
		}
		<-time.After(roomFresh) // of the bubble
		logs.percent = mailbox.RoomPercent + 1
		for range 3 {
			if room.findFull(t.Context(), logs, index) == "" {
				t.Error("not full")
			}
		}
		logs.percent = 10 // a prune
		if room.findFull(t.Context(), logs, index) != "" {
			t.Error("full after a prune")
		}
		<-time.After(roomFresh)
		index.percent = mailbox.RoomPercent + 1
		if full := room.findFull(t.Context(), logs, index); !strings.Contains(full, "index") {
			t.Errorf("a full index: %q", full)
		}
		if logs.count != 6 {
			t.Errorf("measured %d times, want 6", logs.count)
		}
	})
}
