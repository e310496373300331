package runlog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/troupe-run/troupe/internal/control/bounds"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/internal/test/testlog"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
)

// A request about a run with a long log reads what has been appended since the one before. It never shows the state of a
// log that was replaced, and the states leave memory.
func TestStateOfALongLogIsReadOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := func(s *SupervisorStates) int {
			s.mu.Lock()
			defer s.mu.Unlock()
			return len(s.list)
		}
		var read atomic.Int64
		post := testlog.CountingStore{Store: memory.New(memory.Config{}), Reads: &read}
		states := NewSupervisorStates()
		ask := func(run string) SupervisorReplay {
			read.Store(0)
			got, err := states.Replay(t.Context(), post, run)
			want, wantErr := ReplaySupervisorLog(t.Context(), post.Store, run)
			if err != nil || wantErr != nil || got.Place != want.Place || got.Requests != want.Requests || got.State.PolicySetBy != want.State.PolicySetBy || got.State.PolicySetAt != want.State.PolicySetAt {
				t.Fatalf("%+v, %v, want %+v, %v", got, err, want, wantErr)
			}
			return got
		}
		testlog.OpenRun(t, post, "short", 3)
		testlog.OpenRun(t, post, "long", superEntriesMin+10)
		ask("short")
		ask("long")
		testlog.PutPolicy(t, post, "long", 5000)
		if ask("long"); read.Load() != 2 || kept(states) != 1 {
			t.Errorf("%d entries were read for one, %d states are kept", read.Load(), kept(states))
		}
		if err := post.Purge(t.Context(), mailbox.At("long", mailbox.Super), 0); err != nil {
			t.Fatal(err)
		}
		testlog.OpenRun(t, post, "long", 2)
		ask("long")
		if kept(states) != 0 {
			t.Error("the state of a log that is gone is kept")
		}
		for i := range superStatesMax + 3 {
			states.keep(&superState{run: string(rune('a' + i)), entries: superEntriesMin, bytes: 1}, time.Now())
		}
		if kept(states) != superStatesMax {
			t.Errorf("%d states are kept", kept(states))
		}
		states.keep(&superState{run: "large", entries: superEntriesMin, bytes: superBytesMax}, time.Now())
		if kept(states) != 1 {
			t.Errorf("%d states are kept beside one of the most bytes", kept(states))
		}
		<-time.After(superAge + 2*time.Second)
		if synctest.Wait(); kept(states) != 0 {
			t.Errorf("%d states are kept for clients that do not come back", kept(states))
		}
	})
}

// Requests for one run at the same time each get a state and the place of its last entry, although they take turns with
// one kept state: the race detector watches.
func TestRequestsAtOnceTakeTurnsWithAState(t *testing.T) {
	post := memory.New(memory.Config{})
	testlog.OpenRun(t, post, "long", superEntriesMin+10)
	states := NewSupervisorStates()
	var asking sync.WaitGroup
	for i := range 4 {
		asking.Go(func() {
			last := uint64(0)
			for j := range 300 {
				testlog.PutPolicy(t, post, "long", 6000+1000*i+j)
				got, err := states.Replay(t.Context(), post, "long")
				if err != nil || got.Place <= last {
					t.Errorf("place %d after %d, %v", got.Place, last, err)
					return
				}
				last = got.Place
			}
		})
	}
	asking.Wait()
}

// slowStore reads an entry in 20 ms. long counts the reads that are beyond superEntriesMin entries, most how many of
// them there were at once.
type slowStore struct {
	mailbox.Store
	read, long, most *atomic.Int64
}

func (s slowStore) Read(ctx context.Context, at mailbox.Address, after, through uint64, each func(mailbox.Message) error) error {
	n := 0
	defer func() {
		if n > superEntriesMin && s.long != nil {
			s.long.Add(-1)
		}
	}()
	err := s.Store.Read(ctx, at, after, through, func(m mailbox.Message) error {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
		s.read.Add(1)
		if n++; n == superEntriesMin+1 && s.long != nil {
			s.most.Store(max(s.most.Load(), s.long.Add(1)))
		}
		return each(m)
	})
	return err //nolint:wrapcheck // as the store
}

// A request whose time ends while it replays a log leaves what it has read to the next one, so that a log which takes
// longer than a request is read to its end by some of them. Requests at the same time replay it once.
func TestReplayGoesOnWithTheNextRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const entries, requests = superEntriesMin + 500, 20 // an attempt of 10 s reads 500
		var read atomic.Int64
		post := slowStore{Store: memory.New(memory.Config{}), read: &read}
		testlog.OpenRun(t, post.Store, "long", entries-1)
		states := NewSupervisorStates()
		answered, again := 0, 0
		for answered == 0 {
			ctx, cancel := context.WithTimeout(t.Context(), bounds.RequestTimeout)
			var asking sync.WaitGroup
			var done atomic.Int64
			for range requests {
				asking.Go(func() {
					switch got, err := states.Replay(ctx, post, "long"); {
					case err == nil && got.Place == entries:
						done.Add(1)
					case !errors.Is(err, refuse.ErrReplaying):
						t.Errorf("place %d, %v", got.Place, err)
					}
				})
			}
			asking.Wait()
			cancel()
			answered = int(done.Load())
			if again++; again > 20 {
				t.Fatal("the log is never read to its end")
			}
		}
		if n := read.Load(); answered != requests || again < 2 || n > entries+int64(requests*again) {
			t.Errorf("%d of %d requests had an answer after %d attempts, and %d entries were read of %d", answered, requests, again, n, entries)
		}
		if len(states.turns) != 0 || len(states.long) != 0 || len(states.list) != 1 {
			t.Errorf("%d turns, %d long replays, %d states are left", len(states.turns), len(states.long), len(states.list))
		}
	})
}

// Requests for many runs with long logs replay longReplaysMax of them at once.
func TestFewLongLogsAreReplayedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const runs = 3 * longReplaysMax
		var read, long, most atomic.Int64
		post := slowStore{Store: memory.New(memory.Config{}), read: &read, long: &long, most: &most}
		states := NewSupervisorStates()
		var asking sync.WaitGroup
		for i := range runs {
			run := fmt.Sprint("long-", i)
			testlog.OpenRun(t, post.Store, run, superEntriesMin+100)
			asking.Go(func() {
				if _, err := states.Replay(t.Context(), post, run); err != nil {
					t.Error(err)
				}
			})
		}
		asking.Wait()
		if most.Load() != longReplaysMax {
			t.Errorf("%d long logs were replayed at once, want %d", most.Load(), longReplaysMax)
		}
	})
}

// Two runs of many agents whose logs take longer than a request are both read to their ends: neither removes what was
// read of the other.
func TestStatesOfUnfinishedReplaysDoNotRemoveEachOther(t *testing.T) {
	states := NewSupervisorStates()
	now := time.Now()
	for i := range longReplaysMax + 1 {
		states.keep(&superState{run: string(rune('a' + i)), bytes: superBytesMax, unfinished: true}, now)
	}
	states.keep(&superState{run: "whole", entries: superEntriesMin, bytes: superBytesMax}, now)
	var kept []string
	for _, k := range states.list {
		kept = append(kept, k.run)
	}
	if got := strings.Join(kept, " "); got != "b c d e whole" {
		t.Errorf("kept: %s", got)
	}
}
