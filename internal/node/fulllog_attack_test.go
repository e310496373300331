package node

import (
	"fmt"
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/activation"
)

// TestAttackAFullLogIsCanceled: an owner who sends more requests than a log takes does not keep the run from being canceled.
func TestAttackAFullLogIsCanceled(t *testing.T) {
	t.Parallel()
	c := connectClient(t, startNode(t, t.TempDir()))
	run := beginRun(t, c, client.RunRequest{Prompt: "think", Model: writeScript(t, "default: [{text: late, delay: 10m}]"), MaxTokens: 1_000_000})
	for i := range activation.RequestsMax + 1 {
		r := client.BudgetRequest{RunID: run, Request: fmt.Sprintf("b%d", i), Patch: true, Limits: spec.RunLimits{Tokens: int64(900_000 + i)}}
		if err := c.Budget(testContext(t), r); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		if err := c.Steer(testContext(t), client.SteerRequest{RunID: run, Request: fmt.Sprintf("s%d", i), Text: fmt.Sprintf("go on %d", i)}); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
	}
	if _, err := c.Cancel(testContext(t), client.CancelRequest{RunID: run, Now: true, Why: "enough"}); err != nil {
		t.Fatal(err)
	}
	if info, err := c.Wait(testContext(t), run); err != nil || info.State != client.RunFinished {
		t.Errorf("%+v, %v", info, err)
	}
}
