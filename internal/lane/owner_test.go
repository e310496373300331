package lane_test

import (
	"testing"

	"github.com/troupe-run/troupe/internal/lane"
)

// The runs of a lane have one owner: the order of its log decides between two that began it, and a deleted lane is free.
func TestOwnerOfALane(t *testing.T) {
	s := &lane.State{}
	for i, f := range []lane.Fact{lane.Enqueued{Run: "a", Owner: "alice"}, lane.Enqueued{Run: "b", Owner: "bob"}, lane.Enqueued{Run: "o"}} {
		s.Apply(lane.Entry{Place: uint64(i + 1), At: int64(i), Fact: f})
	}
	if len(s.Runs) != 1 || s.Owner != "alice" {
		t.Errorf("%+v", s)
	}
	s.Apply(lane.Entry{Place: 4, Fact: lane.Over{Run: "a"}})
	s.Apply(lane.Entry{Place: 5, Fact: lane.Deleted{}})
	s.Apply(lane.Entry{Place: 6, Fact: lane.Enqueued{Run: "b", Owner: "bob"}})
	if len(s.Runs) != 1 || s.Owner != "bob" {
		t.Errorf("after the deletion: %+v", s)
	}
}
