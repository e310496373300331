package sim

import (
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
)

// refusals distinguishes the rules by which a child is refused, by their texts.
// "this agent may not delegate" is not among them: an agent without the right
// is not offered the tool, so no simulated run reaches that rule.
var refusals = []struct {
	words string
	place Place
}{
	{"was canceled", RefusedCanceled},
	{"there is no agent", RefusedUnknown},
	{"deep at most", RefusedDepth},
	{"live children", RefusedChildren},
	{"a run may have", RefusedAgents},
	{"budget does not cover", RefusedBudget},
	{"a provider billed", RefusedOverrun},
	{"budget is frozen", RefusedFrozen},
	{"schema of its own", RefusedSchema},
}

func (s *sim) reachRefused(t activation.OutboxMessage) {
	var e agent.Returned
	if err := mailbox.Unmarshal(t.Body, &e); err != nil {
		s.fail("returned: %v", err)
	}
	if e.Live {
		return
	}
	for _, r := range refusals {
		if strings.Contains(e.Text, r.words) {
			s.reach.hit(r.place)
			return
		}
	}
	s.fail("a child is refused for a reason that nobody knows: %q", e.Text)
}
