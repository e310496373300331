package exit

import (
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
)

// Every reason has the code and the subtype of the table.
func TestExitCodes(t *testing.T) {
	want := map[spec.Reason]int{
		spec.Completed: 0, spec.DiminishingReturns: 0,
		spec.TokenBudget: 3, spec.CostBudget: 3,
		spec.MaxTurns: 4, spec.MaxToolCalls: 4, spec.Timeout: 4,
		spec.NeedsHuman: 5, spec.Unanswered: 5, spec.ResumeUnsafe: 5, spec.EvidenceMissing: 5,
		spec.ModelError: 7, spec.PromptTooLong: 7, spec.Malformed: 7, spec.MaxOutputTokens: 7,
		spec.Refused: 8, spec.Guardrail: 8, spec.Vetoed: 8, spec.StopHookPrevented: 8, spec.PolicyBlocked: 8,
		spec.ToolFailure: 1, spec.Failed: 1, spec.LogDamaged: 1,
		spec.ByCancel: 130, spec.AbortedStreaming: 130, spec.AbortedTools: 130,
	}
	for _, r := range spec.Reasons() {
		code, ok := want[r]
		if !ok {
			t.Errorf("%s has no code in the table", r)
		}
		if got := ForReason(r, false); got != code {
			t.Errorf("%s: exit %d, want %d", r, got, code)
		}
		if code == Interrupted {
			code = Terminated
		}
		if got := ForReason(r, true); got != code {
			t.Errorf("%s after SIGTERM: exit %d, want %d", r, got, code)
		}
	}
}
