package control

import (
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/supervisor"
)

// TestARunWithoutASupervisorKeepsTheEndThatItsRowTells: who cannot get through
// its log cannot write an end into it; the log says for ever that the run lives.
//
//behaviour:shows G7
func TestARunWithoutASupervisorKeepsTheEndThatItsRowTells(t *testing.T) {
	row := runindex.Row{RunInfo: client.RunInfo{RunID: "r", State: client.RunFinished, Result: &event.Result{Reason: spec.ResumeUnsafe, Detail: "given up"}}}
	got := withState(row, supervisor.State{Phase: supervisor.Live})
	if got.State != client.RunFinished || got.Result == nil || got.Result.Reason != spec.ResumeUnsafe {
		t.Errorf("the run is told as %s %+v", got.State, got.Result)
	}
	over := supervisor.State{Phase: supervisor.Over, Outcome: spec.Outcome{Reason: spec.Completed}}
	if got := withState(row, over); got.Result.Reason != spec.Completed {
		t.Errorf("an end in the log counts for more than the row: %+v", got.Result)
	}
}
