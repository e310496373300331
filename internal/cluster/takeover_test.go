package cluster

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"
)

// waitUntil waits until something is so.
func waitUntil(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick, late := time.NewTicker(time.Millisecond), time.After(30*time.Second)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

// TestOneUnreadableShardDoesNotKeepTheOthersFromBeingTakenUp: of sixteen shards that a
// node has gained one fails at once, and one is never answered. The others are taken up,
// the two are reported, and tried again until they can be read.
//
//behaviour:shows F2
func TestOneUnreadableShardDoesNotKeepTheOthersFromBeingTakenUp(t *testing.T) {
	t.Parallel()
	const rotten, silent, lost = 3, 0, 7
	var mu sync.Mutex
	var wait sync.WaitGroup
	done, bad, mended := map[int]bool{}, map[int]bool{}, false
	ctx, end := context.WithCancel(t.Context())
	u := &shardTakeover{ctx: ctx, first: 20 * time.Millisecond, pause: time.Millisecond, state: map[int]*takeoverState{}, turn: make(chan struct{}, 1), wait: &wait,
		holds: func(slot int) bool { return slot != lost },
		report: func(slot int, err error) {
			mu.Lock()
			defer mu.Unlock()
			if bad[slot] = err != nil; !bad[slot] {
				delete(bad, slot)
			}
		},
		try: func(ctx context.Context, slot int) error {
			mu.Lock()
			whole := mended
			mu.Unlock()
			switch {
			case whole:
			case slot == silent:
				<-ctx.Done()
				return ctx.Err()
			case slot == rotten || slot == lost:
				return errors.New("an entry does not decode")
			}
			mu.Lock()
			defer mu.Unlock()
			done[slot] = true
			return nil
		}}
	for s := range 16 {
		u.startTakeover(s)
	}
	is := func(taken int, wrong ...int) func() bool {
		return func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(done) == taken && len(bad) == len(wrong) && !slices.ContainsFunc(wrong, func(s int) bool { return !bad[s] })
		}
	}
	waitUntil(t, "all others are taken up, and the two are reported", is(13, rotten, silent))
	mu.Lock()
	mended = true
	mu.Unlock()
	waitUntil(t, "the two are taken up as well", is(15))
	u.startTakeover(lost) // another node gave it back
	waitUntil(t, "what is gained again is looked at again", is(16))
	end()
	wait.Wait()
}
