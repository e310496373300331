package node

import (
	"context"
	"slices"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
)

// slowReader is a store whose first read of a run is interrupted after the first log. It reads one
// log after the other, as stores do whose logs are in several streams or files.
type slowReader struct {
	mailbox.Store
	interrupt func()
}

func (s slowReader) ReadRun(ctx context.Context, run string, each func(mailbox.Message) error) error {
	logs, err := s.Addresses(ctx, run)
	if err != nil {
		return err
	}
	for _, at := range logs {
		if err := s.Read(ctx, at, 0, 0, each); err != nil {
			return err
		}
		s.interrupt()
	}
	return nil
}

// TestAFollowerOfARunThatEndsDuringAReadMissesNothing: the read finds the end of the run, and the log
// of the agent as it was before.
//
//behaviour:shows I2
func TestAFollowerOfARunThatEndsDuringAReadMissesNothing(t *testing.T) {
	t.Parallel()
	w, interrupt := newGatedModel(), make(chan func(), 1)
	h := startNode(t, t.TempDir(), func(c *Config) {
		c.Contributions.Agents = []agentfile.Definition{{Name: "one", Description: "Does it."}}
		c.Contributions.Models, c.Model = map[string]model.Client{"own/wait": w}, "own/wait"
		c.watchRequests = func(s mailbox.Store) mailbox.Store {
			return slowReader{s, func() {
				select {
				case do := <-interrupt:
					do()
				default:
				}
			}}
		}
	})
	c := connectClient(t, h)
	openRuns(t, c, "a")
	w.expectBegun(t, "a")
	interrupt <- func() {
		w.pass <- "one"
		if info, err := c.Wait(t.Context(), "run-a"); err != nil || info.State != client.RunFinished {
			t.Errorf("the run is %s: %v", info.State, err)
		}
	}
	var kinds []string
	err := c.Events(testContext(t), "run-a", nil, true, func(e client.Event, _ []byte) error {
		kinds = append(kinds, e.Agent+" "+e.Kind)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	end, last := slices.Index(kinds, "root "+event.KindAgentFinished), slices.Index(kinds, mailbox.Super+" "+event.KindRunFinished)
	if end < 0 || end > last {
		t.Errorf("the events of the run are %v", kinds)
	}
}
