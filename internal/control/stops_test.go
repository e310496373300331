package control

import (
	"testing"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/internal/control/runlog"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/internal/test/testlog"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// idleRun is a run of two agents whose logs no node activates, so no process publishes a Summary or
// delivers a message of the supervisor.
func idleRun(t *testing.T) *parts {
	t.Helper()
	post := memory.New(memory.Config{})
	node, err := actors.Start(t.Context(), actors.Config{Post: post, Model: noModel, Holds: holdsNothing})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(node.Stop)
	super, root, child := mailbox.At("r", mailbox.Super), mailbox.At("r", "root"), mailbox.At("r", "root-1-0")
	testlog.PutFact(t, post, super, "", supervisor.Opened{Run: "r", Goal: "work", Root: "a", Definitions: []supervisor.Definition{{Name: "a"}},
		Tools: []model.ToolSpec{{Name: "delegate"}}}, false)
	testlog.PutFact(t, post, super, root, agent.Delegate{Call: "1-0", Child: "root-1-0", Goal: "help"}, false)
	for _, at := range []mailbox.Address{root, child} {
		testlog.PutFact(t, post, at, super, agent.Submitted{Task: spec.Task{Goal: "work"}}, false)
	}
	return newParts(&Config{Post: post, Node: node, Runs: runindex.Open(bucketsOf(t, startEmbedded(t)))})
}

// A supervisor without an activation tells no agent. The control service reads the cancel in its log
// and must not conclude that the agents were told.
func TestACancelReachesAgentsWhoseSupervisorHasNoActivation(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		of       string
		canceled map[string]bool
	}{
		{"", map[string]bool{"root": true, "root-1-0": true}},
		{"root-1-0", map[string]bool{"root": false, "root-1-0": true}},
	} {
		t.Run("of "+tt.of, func(t *testing.T) {
			t.Parallel()
			c := idleRun(t)
			if _, err := c.cfg.Runs.Add(t.Context(), client.RunInfo{RunID: "r", State: client.RunLive}); err != nil {
				t.Fatal(err)
			}
			reply, err := c.canceler.cancelRun(t.Context(), client.CancelRequest{RunID: "r", Request: "c1", Agent: tt.of, Now: true, WaitMS: 4000})
			if err != nil {
				t.Fatal(err)
			}
			ends, err := readLogStatuses(t.Context(), c.cfg.Post, "r")
			if err != nil {
				t.Fatal(err)
			}
			for name, want := range tt.canceled {
				e := ends[mailbox.At("r", name)]
				if e == nil {
					t.Fatalf("%s has no log: %v", name, ends)
				}
				if got := e.cancelFact() != nil; got != want {
					t.Errorf("the log of %s has a cancel: %t, want %t; the reply is %+v", name, got, want, reply)
				}
			}
		})
	}
}

// The supervisor's log lost an agent, and another agent has no log yet: as many logs as members do
// not mean that they are those of the members.
func TestAStrayIsCanceledAlthoughTheCountsAgree(t *testing.T) {
	t.Parallel()
	c := idleRun(t)
	stray := mailbox.At("r", "root-2-0")
	if err := c.cfg.Post.Purge(t.Context(), mailbox.At("r", "root-1-0"), 0); err != nil {
		t.Fatal(err)
	}
	testlog.PutFact(t, c.cfg.Post, stray, mailbox.At("r", mailbox.Super), agent.Submitted{Task: spec.Task{Goal: "work"}}, false)
	s, err := runlog.ReplaySupervisor(t.Context(), c.cfg.Post, "r")
	if err != nil {
		t.Fatal(err)
	}
	r := client.CancelRequest{RunID: "r", Request: "c1", Now: true}
	reply, err := c.canceler.cancelStrays(t.Context(), s.Summary(false), r, agent.Canceled{Now: true})
	if err != nil || reply.Agents != 1 {
		t.Errorf("%+v, %v", reply, err)
	}
	ends, err := readLogStatuses(t.Context(), c.cfg.Post, "r")
	if err != nil || ends[stray] == nil || ends[stray].cancelFact() == nil {
		t.Errorf("the stray has no cancel: %v", err)
	}
}

// A Summary that leaves out agents does not say that an agent without a log is none.
func TestAnAgentThatASummaryLeavesOutIsFound(t *testing.T) {
	t.Parallel()
	c := idleRun(t)
	child := mailbox.At("r", "root-1-0")
	if err := c.cfg.Post.Purge(t.Context(), child, 0); err != nil {
		t.Fatal(err)
	}
	l, err := c.views.ViewOne(t.Context(), runindex.Row{RunInfo: client.RunInfo{RunID: "r", State: client.RunLive}})
	if err != nil || len(l.Summary.Agents) != 2 {
		t.Fatalf("%+v, %v", l.Summary, err)
	}
	l.Summary.Agents, l.Summary.AgentsCut = l.Summary.Agents[:1], true
	f := agent.Steered{Text: "go on"}
	if _, err := c.commander.appendToViewed(t.Context(), l, "s1", "root-1-0", "", f.Kind(), f); err != nil {
		t.Error(err)
	}
	if _, err := c.commander.appendToViewed(t.Context(), l, "s2", "root-3-0", "", f.Kind(), f); !refuse.IsNotFound(err) {
		t.Errorf("an agent that the run does not have: %v", err)
	}
}
