package actors_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// TestAnAgentIsNotGivenUpWhileANodeOfItsPoolLives: it has given no sign of life in time.
// While a node of its pool lives it is waited for; without one it is given up.
//
//behaviour:shows F2
func TestAnAgentIsNotGivenUpWhileANodeOfItsPoolLives(t *testing.T) {
	for _, lives := range []bool{true, false} {
		var ahead atomic.Int64 // of the clock that stamps entries
		ahead.Store(-supervisor.FirstMessageMS + 100)
		post := memory.New(memory.Config{Now: func() int64 { return time.Now().UnixMilli() + ahead.Load() }})
		asked := make(chan string, 8)
		s := stageOf(t, actors.Config{Name: "owner", Post: post,
			// Its own log is held by nobody.
			Holds: func(at mailbox.Address) (uint64, bool) { return 1, at.Agent() == mailbox.Super },
			Serves: func(pool string) bool {
				ahead.Store(0)
				asked <- pool
				return lives
			},
			Model: func(string) (model.Client, string, error) { return nil, "", nil }})
		s.openRun("r1")
		if pool := <-asked; pool != supervisor.DefaultPool {
			t.Errorf("it is asked about pool %q", pool)
		}
		if !lives {
			if r := s.awaitResult(); r.Reason != spec.Timeout {
				t.Errorf("result: %+v", r)
			}
			continue
		}
		f := supervisor.PolicySet{}
		if err := s.node.Command(t.Context(), "r1.super", "p1", f.Kind(), f); err != nil {
			t.Fatal(err)
		}
		s.awaitEvent(event.KindPolicyApplied) // what came of the timer comes before
		if kinds := logKinds(t, post, "r1.super"); slices.Contains(kinds, "woke") {
			t.Errorf("it was given up: %v", kinds)
		}
	}
}
