package cluster

import (
	"sync"
	"testing"

	"github.com/troupe-run/troupe/actors"
)

// What shells have not read is counted, until they read it or end, also while a shell that ends still reads.
func TestUnreadEntriesOfShells(t *testing.T) {
	t.Parallel()
	var n actorCounter
	cfg := actors.Config{}
	n.observeActors(&cfg)
	first, second := cfg.CountUnread(), cfg.CountUnread()
	first.Sent()
	first.Sent()
	second.Sent()
	first.Read()
	if got := n.unread.Load(); got != 2 {
		t.Errorf("%d entries, not 2", got)
	}
	first.Forget()
	first.Read()
	if got := n.unread.Load(); got != 1 {
		t.Errorf("%d entries, not 1", got)
	}
	second.Read()
	for range 100 {
		u := cfg.CountUnread()
		for range 50 {
			u.Sent()
		}
		var work sync.WaitGroup
		work.Go(func() {
			for range 50 {
				u.Read()
			}
		})
		work.Go(u.Forget)
		work.Wait()
	}
	if got := n.unread.Load(); got != 0 {
		t.Errorf("%d entries, not 0", got)
	}
}
