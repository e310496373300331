package node

import (
	"fmt"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/refuse"
)

// TestAttackAFullLogIsCanceled: an owner who sends more requests than a log takes is told so before one has no effect, and
// does not keep the run from being canceled.
func TestAttackAFullLogIsCanceled(t *testing.T) {
	t.Parallel()
	c := connectClient(t, startNode(t, t.TempDir()))
	run := beginRun(t, c, client.RunRequest{Prompt: "think", Model: writeScript(t, "default: [{text: late, delay: 10m}]"), MaxTokens: 1_000_000})
	budget := func(i int) error {
		return c.Budget(testContext(t), client.BudgetRequest{RunID: run, Request: fmt.Sprintf("b%d", i), Patch: true, Limits: spec.RunLimits{Tokens: int64(900_000 + i)}})
	}
	steer := func(i int) error {
		return c.Steer(testContext(t), client.SteerRequest{RunID: run, Request: fmt.Sprintf("s%d", i), Text: fmt.Sprintf("go on %d", i)})
	}
	for verb, send := range map[string]func(int) error{"budget": budget, "steer": steer} {
		taken := 0
		for taken <= activation.RequestsMax && send(taken) == nil {
			taken++
		}
		if err := send(taken); taken < activation.RequestsMax/2 || taken > activation.RequestsMax || !refuse.HasCode(err, client.CodeConflict) {
			t.Errorf("%s: %d were taken, and the next one: %v", verb, taken, err)
		}
		if err := send(taken - 1); err != nil {
			t.Errorf("%s: the last one, sent again: %v", verb, err)
		}
		if verb == "budget" {
			awaitEvents(t, c, run, event.KindBudgetChanged, taken)
			info, err := c.Get(testContext(t), run)
			if want := int64(900_000 + taken - 1); err != nil || info.Result == nil || info.Result.Budget.Limit != want {
				t.Errorf("the budget is %+v, %v; want %d tokens", info.Result, err, want)
			}
		}
	}
	if _, err := c.Cancel(testContext(t), client.CancelRequest{RunID: run, Now: true, Why: "enough"}); err != nil {
		t.Fatal(err)
	}
	if info, err := c.Wait(testContext(t), run); err != nil || info.State != client.RunFinished {
		t.Errorf("%+v, %v", info, err)
	}
}
