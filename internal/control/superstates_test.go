package control

import (
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
		if ask("long"); read.Load() != 2 || len(states.list) != 1 {
			t.Errorf("%d entries were read for one, %d states are kept", read.Load(), len(states.list))
		}
		if err := post.Purge(t.Context(), mailbox.At("long", mailbox.Super), 0); err != nil {
			t.Fatal(err)
		}
		openedRun(t, post, "long", 2)
		ask("long")
		if len(states.list) != 0 {
			t.Error("the state of a log that is gone is kept")
		}
		for i := range superStatesMax + 3 {
			states.put(&superState{run: string(rune('a' + i)), entries: superEntriesMin, bytes: 1}, time.Now())
		}
		if len(states.list) != superStatesMax {
			t.Errorf("%d states are kept", len(states.list))
		}
		states.put(&superState{run: "large", entries: superEntriesMin, bytes: superBytesMax}, time.Now())
		if len(states.list) != 1 {
			t.Errorf("%d states are kept beside one of the most bytes", len(states.list))
		}
		<-time.After(superAge + 2*time.Second)
		if synctest.Wait(); len(states.list) != 0 {
			t.Errorf("%d states are kept for clients that do not come back", len(states.list))
		}
	})
}
