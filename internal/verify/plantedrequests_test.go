package verify_test

import (
	"fmt"
	"testing"
)

// fillRequests puts so many commands before the end of the log of the run that further ones do not count.
func (r *runLog) fillRequests() {
	end := r.find("super", "finish")
	for i := range 1024 {
		r.command(end, "super", "policy_set", map[string]any{})
		r.entries[end].Items[0].ID = fmt.Sprintf("filler%d", i)
	}
}

// TestCommandsBeyondTheLimitOfALogDoNotCount: an actor reads 1,024 commands of clients, and of those after them only cancels.
// Limits that it did not read are no limits.
func TestCommandsBeyondTheLimitOfALogDoNotCount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		full  bool
		limit int64
	}{{"the log has room", false, 1}, {"the log is full", true, 1 << 30}} {
		r := openRunLog(t, plain)
		r.opened(map[string]any{"t": 1 << 30})
		if c.full {
			r.fillRequests()
		}
		r.setLast("limit_set", map[string]any{"l": map[string]any{"t": 1}, "p": true})
		report := r.verify()
		for _, f := range report.Findings {
			t.Errorf("%s: %s", c.name, f)
		}
		if report.Sums.Limit.Tokens != c.limit {
			t.Errorf("%s: the limit is %d tokens, want %d", c.name, report.Sums.Limit.Tokens, c.limit)
		}
	}
}
