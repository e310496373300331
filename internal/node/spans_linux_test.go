package node

import (
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/telemetry"
	"github.com/troupe-run/troupe/mailbox"
)

// An agent that its run gives up, because no node gets through its log, has a span, and the spans of its calls have
// their parent.
//
//behaviour:shows I3
func TestTraceHasTheSpanOfAnAgentThatIsGivenUp(t *testing.T) {
	t.Parallel()
	r := newSpanReceiver(t)
	model, gate, agents := heldFamily(t)
	h := startNode(t, t.TempDir(), exportTo(r, telemetry.ContentNone), func(c *Config) { c.Roots = []string{agents} })
	c := connectClient(t, h)
	id := beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "boss"})
	awaitEvents(t, c, id, event.KindToolStarted, 2)
	appendCrashes(t, h, mailbox.At(id, "root-1-0"))
	openGate(t, gate)
	end := waitFinished(t, c, id, spec.Failed) // the root says no word about it
	if i := slices.IndexFunc(end.Result.Agents, func(a event.AgentResult) bool { return a.GivenUp }); i < 0 || end.Result.Agents[i].ID != "root-1-0" {
		t.Fatalf("%+v", end.Result.Agents)
	}
	const span = "root-1-0 invoke_agent keeper "
	list := r.ofRun(t, id, func(list []*receivedSpan) bool {
		return slices.ContainsFunc(list, func(s *receivedSpan) bool { return spanText(s) == span })
	})
	if broken := brokenLinks(list); len(broken) > 0 {
		t.Errorf("%s\n%s", strings.Join(broken, "\n"), describeSpans(list))
	}
	for _, s := range list {
		if spanText(s) == span && (attributeText(s.Attributes, "error.type") != string(spec.ResumeUnsafe) || s.EndTimeUnixNano <= s.StartTimeUnixNano) {
			t.Errorf("the span of the agent: %v", s)
		}
	}
}
