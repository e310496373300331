package control

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control/bounds"
	"github.com/troupe-run/troupe/internal/control/buildslots"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/supervisor"
)

// slowBuilds are builds that end when the test ends them.
type slowBuilds struct {
	*opener
	begun  chan string // the owner of each
	finish chan struct{}
	ended  chan error // of each call of build
}

// stillBuilds makes builds that do not end, with most slots; it ends them after the test.
func stillBuilds(t *testing.T, most int) *slowBuilds {
	t.Helper()
	s := &slowBuilds{begun: make(chan string, 100), finish: make(chan struct{}), ended: make(chan error, 100)}
	s.opener = newParts(&Config{Build: func(r client.RunRequest) (supervisor.Opened, client.RunAccepted, error) {
		s.begun <- r.Owner
		<-s.finish
		return supervisor.Opened{}, client.RunAccepted{}, nil
	}}).opener
	s.building = buildslots.New(most)
	return s
}

func (s *slowBuilds) begin(ctx context.Context, owner string) {
	go func() {
		_, _, err := s.build(ctx, client.RunRequest{RunID: "r", Owner: owner})
		s.ended <- err
	}()
}

// counts returns how many builds each owner has begun since it was last asked.
func (s *slowBuilds) counts() map[string]int {
	synctest.Wait()
	n := map[string]int{}
	for len(s.begun) > 0 {
		n[<-s.begun]++
	}
	return n
}

// TestAttackManyBuildsAtOnce: a node builds a bounded number of runs at once, and a request whose time is over leaves the queue.
func TestAttackManyBuildsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 4
		s := stillBuilds(t, most)
		for range most + 1 {
			s.begin(t.Context(), "")
		}
		if n := s.counts(); n[""] != most {
			t.Errorf("%v builds at once, want %d", n, most)
		}
		over, end := context.WithCancel(t.Context())
		end()
		if _, _, err := s.build(over, client.RunRequest{RunID: "r"}); !errors.Is(err, context.Canceled) {
			t.Errorf("one more build: %v", err)
		}
		close(s.finish)
		for range most + 1 {
			if err := <-s.ended; err != nil {
				t.Error(err)
			}
		}
		if _, _, err := s.build(t.Context(), client.RunRequest{}); err != nil {
			t.Errorf("a build after the others: %v", err)
		}
		synctest.Wait()
		s.checkNoneLeft(t)
	})
}

// checkNoneLeft checks that no build has a slot or waits for one.
func (s *slowBuilds) checkNoneLeft(t *testing.T) {
	t.Helper()
	if building, overdue := s.building.Counts(); building != 0 || len(overdue) != 0 {
		t.Errorf("left: %d builds, overdue by owner %v", building, overdue)
	}
}

// TestAttackSlowBuildsOfAnOwner: an owner whose builds are slow has half of the slots, however many it sends, and the builds
// of others begin at once.
func TestAttackSlowBuildsOfAnOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stillBuilds(t, 4)
		for range 20 {
			s.begin(t.Context(), "bob")
		}
		if n := s.counts(); n["bob"] != 2 {
			t.Errorf("bob has %d builds, want 2", n["bob"])
		}
		for _, owner := range []string{"alice", ""} {
			s.begin(t.Context(), owner)
			if n := s.counts(); n[owner] != 1 {
				t.Errorf("a build of %q waits for those of bob: %v", owner, n)
			}
		}
		s.begin(t.Context(), "alice")
		s.finish <- struct{}{} // one of bob's or another: the slot is for the owner with fewer builds
		if n := s.counts(); n["alice"]+n["bob"] != 1 {
			t.Errorf("a slot is free, and %v", n)
		}
		close(s.finish)
		synctest.Wait()
	})
}

// TestAttackBuildsThatNeverEnd: a build that never ends gives its slot away, and its request is refused. An owner with many of
// them begins no more; others do.
func TestAttackBuildsThatNeverEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stillBuilds(t, 4)
		asked, cancel := context.WithTimeout(t.Context(), bounds.RequestTimeout)
		defer cancel()
		began := time.Now()
		s.begin(asked, "bob")
		if err := <-s.ended; !refuse.HasCode(err, client.CodeUnavailable) || time.Since(began) != bounds.RequestTimeout {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		for range buildslots.OverdueMax - 1 {
			s.begin(t.Context(), "bob")
		}
		for range buildslots.OverdueMax - 1 {
			if err := <-s.ended; err == nil {
				t.Error("a build that never ends has ended")
			}
		}
		if n := s.counts(); n["bob"] == 0 {
			t.Error("no build of bob has begun")
		}
		for overdue := map[string]int{}; overdue["bob"] < buildslots.OverdueMax; _, overdue = s.building.Counts() {
			s.begin(t.Context(), "bob")
			<-s.ended // after bounds.BuildTimeout
			s.counts()
		}
		if building, _ := s.building.Counts(); building != 0 {
			t.Errorf("%d slots are taken by builds that do not end", building)
		}
		if _, _, err := s.build(t.Context(), client.RunRequest{RunID: "r", Owner: "bob"}); !refuse.HasCode(err, client.CodeUnavailable) || len(s.counts()) > 0 {
			t.Errorf("one more build of bob: %v", err)
		}
		s.begin(t.Context(), "alice")
		if n := s.counts(); n["alice"] != 1 {
			t.Error("alice waits for builds of bob that never end")
		}
		close(s.finish)
		synctest.Wait()
		s.checkNoneLeft(t)
	})
}

// A panic in a build ends the request alone, as one in its own goroutine does.
func TestAPanicInABuildIsThatOfItsRequest(t *testing.T) {
	t.Parallel()
	c := newParts(&Config{Build: func(client.RunRequest) (supervisor.Opened, client.RunAccepted, error) { panic("mistake") }}).opener
	defer func() {
		if p := recover(); !strings.HasPrefix(fmt.Sprint(p), "mistake") {
			t.Errorf("it panicked with %v", p)
		}
		if building, _ := c.building.Counts(); building != 0 {
			t.Error("the slot is taken")
		}
	}()
	_, _, _ = c.build(t.Context(), client.RunRequest{})
}
