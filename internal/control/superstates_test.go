package control

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
)

// A request about a run with a long log reads what has been appended since the one before. It never shows the state of a
// log that was replaced, and the states leave memory.
func TestStateOfALongLogIsReadOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := func(s *superStates) int {
			s.mu.Lock()
			defer s.mu.Unlock()
			return len(s.list)
		}
		var read atomic.Int64
		post := readStore{Store: memory.New(memory.Config{}), read: &read}
		states := &superStates{}
		ask := func(run string) supervisorReplay {
			read.Store(0)
			got, err := states.replay(t.Context(), post, run)
			want, wantErr := replaySupervisorLog(t.Context(), post.Store, run)
			if err != nil || wantErr != nil || got.place != want.place || got.requests != want.requests || got.state.PolicySetBy != want.state.PolicySetBy || got.state.PolicySetAt != want.state.PolicySetAt {
				t.Fatalf("%+v, %v, want %+v, %v", got, err, want, wantErr)
			}
			return got
		}
		openedRun(t, post, "short", 3)
		openedRun(t, post, "long", superEntriesMin+10)
		ask("short")
		ask("long")
		putPolicy(t, post, "long", 5000)
		if ask("long"); read.Load() != 2 || kept(states) != 1 {
			t.Errorf("%d entries were read for one, %d states are kept", read.Load(), kept(states))
		}
		if err := post.Purge(t.Context(), mailbox.At("long", mailbox.Super), 0); err != nil {
			t.Fatal(err)
		}
		openedRun(t, post, "long", 2)
		ask("long")
		if kept(states) != 0 {
			t.Error("the state of a log that is gone is kept")
		}
		for i := range superStatesMax + 3 {
			states.put(&superState{run: string(rune('a' + i)), entries: superEntriesMin, bytes: 1}, time.Now())
		}
		if kept(states) != superStatesMax {
			t.Errorf("%d states are kept", kept(states))
		}
		states.put(&superState{run: "large", entries: superEntriesMin, bytes: superBytesMax}, time.Now())
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
	openedRun(t, post, "long", superEntriesMin+10)
	states := &superStates{}
	var asking sync.WaitGroup
	for i := range 4 {
		asking.Go(func() {
			last := uint64(0)
			for j := range 300 {
				putPolicy(t, post, "long", 6000+1000*i+j)
				got, err := states.replay(t.Context(), post, "long")
				if err != nil || got.place <= last {
					t.Errorf("place %d after %d, %v", got.place, last, err)
					return
				}
				last = got.place
			}
		})
	}
	asking.Wait()
}
