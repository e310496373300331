package local

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/troupe-run/troupe/mailbox"
)

// TestStallEndsWithoutAnotherAppend: the disk fails, meanwhile an append is refused for want of room,
// and the disk recovers. Nothing more is written, and the stall ends.
func TestStallEndsWithoutAnotherAppend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := make(chan bool, 4)
		h := &health{after: time.Second, tell: func(s mailbox.Stall) { told <- !s.Since.IsZero() }}
		defer h.close()
		h.noteFailed("run.a", 1, errors.New("input/output error"))
		h.noteRefused("run.a", mailbox.ErrFull)
		h.noteStored()
		if !<-told || len(told) > 0 {
			t.Fatal("want one report, of a stall")
		}
		select {
		case stalls := <-told:
			if stalls {
				t.Error("a second report of the stall")
			}
		case <-time.After(time.Minute):
			t.Error("a minute later it still stalls")
		}
	})
}
