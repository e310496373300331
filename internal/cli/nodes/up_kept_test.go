package nodes

import (
	"slices"
	"testing"

	"github.com/troupe-run/troupe/client"
)

// troupe up says what runs wait for, and names the newest one that a person can continue.
func TestDescribeKeptRuns(t *testing.T) {
	command := func(words string) string { return "troupe " + words }
	in := func(id string, state client.RunState) client.RunInfo { return client.RunInfo{RunID: id, State: state} }
	got := describeKeptRuns([]client.RunInfo{in("e", client.RunFinished), in("d", client.RunInterrupted), in("c", client.RunParked), in("b", client.RunInterrupted), in("a", client.RunParked)}, command)
	want := []string{
		"questions of 2 runs of `troupe run` wait in this state directory, and these nodes do not read them: stop troupe up, then troupe questions shows them",
		"2 unfinished runs of `troupe run` in this state directory, which these nodes do not continue: stop troupe up, then troupe run --resume d continues the newest",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got := describeKeptRuns([]client.RunInfo{in("e", client.RunFinished)}, command); got != nil {
		t.Errorf("%q", got)
	}
}
