package runindex

import (
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
)

// TestAttackLongTextsFillTheIndex: what a provider or a model wrote is cut in the row.
func TestAttackLongTextsFillTheIndex(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("<", 250_000)
	result := event.Result{Detail: long, Journal: long, Cancel: &event.CancelResult{Why: long}}
	row := Summarize(client.RunInfo{State: client.RunFinished, Result: &result}).Result
	for name, text := range map[string]string{"detail": row.Detail, "journal": row.Journal, "why": row.Cancel.Why} {
		if len(text) > rowTextBytes+len(" …") || !strings.HasPrefix(text, "<<") {
			t.Errorf("%s of the row has %d bytes", name, len(text))
		}
	}
	if result.Detail != long || result.Cancel.Why != long {
		t.Error("the result itself was changed")
	}
}
