package node

import (
	"slices"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/verify"
	"github.com/troupe-run/troupe/mailbox"
)

// TestARunThatWasGivenUpIsVerified: an agent that its run gives up has settled nothing of what it had open, and a root that is given
// up says no word about its end. A sibling goes on. The logs keep the rules.
//
//behaviour:shows G7
func TestARunThatWasGivenUpIsVerified(t *testing.T) {
	t.Parallel()
	for agent, reason := range map[string]spec.Reason{"root-1-0": spec.Failed, "root": spec.ResumeUnsafe} {
		model, gate, agents := heldFamily(t)
		h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{agents} })
		c := connectClient(t, h)
		id := beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "boss"})
		awaitEvents(t, c, id, event.KindToolStarted, 2)
		appendCrashes(t, h, mailbox.At(id, agent))
		openGate(t, gate)
		info := waitFinished(t, c, id, reason)
		for _, a := range info.Result.Agents {
			if agent == "root-1-0" && a.ID == "root-1-1" && a.Reason != spec.Completed {
				t.Errorf("the sibling ended as %s", a.Reason)
			}
		}
		var report verify.Report
		waitUntil(t, "the logs keep the rules", func() bool { // agents that were given up still write
			report = verify.Run(dumpRun(t, c, id).Entries, verify.Claim{State: "finished", Reason: string(reason)})
			isWrong := slices.ContainsFunc(report.Findings, func(f verify.Finding) bool { return f.Rule != verify.OwnID }) // the crashes are entries of the test
			if isWrong {
				t.Logf("%s: %v", agent, report.Findings)
			}
			return !isWrong
		})
		if c := report.Certificate; agent == "root" && c.Rule != "the supervisor gave root up" {
			t.Errorf("%+v", c)
		}
	}
}
