package agentprotocol

import (
	"fmt"
	"testing"
	"time"
)

// A sender that signs as much as it can is refused from a number on, and others are not. Each nonce is remembered for as
// long as its signature could be used, and forgotten later.
func TestAttackSenderFillsTheNonces(t *testing.T) {
	t.Parallel()
	var table nonceTable
	begin := time.Now()
	for i := range senderNoncesMax {
		if failed := table.add("loud", fmt.Sprint(i), begin); failed != nil {
			t.Fatalf("nonce %d: %+v", i, failed)
		}
	}
	if failed := table.add("loud", "more", begin.Add(time.Second)); failed == nil || failed.code != "429" || failed.RetryAfterS != 90 {
		t.Errorf("one nonce more than a sender may have: %+v", failed)
	}
	for _, k := range []struct {
		sender, nonce string
		after         time.Duration
		code          string
	}{
		{"quiet", "n", 0, ""}, {"quiet", "n", 2 * senderSkew, "401"}, {"quiet", "n", noncePeriod - 1, "401"}, {"loud", "again", noncePeriod - 1, "429"},
		{"loud", "0", noncePeriod, "401"}, {"loud", "more", noncePeriod, ""}, {"quiet", "n", noncePeriod, "401"},
		{"quiet", "n", 2 * noncePeriod, ""}, {"loud", "more", 2 * noncePeriod, "401"}, {"loud", "more", 4 * noncePeriod, ""},
	} {
		code := ""
		if failed := table.add(k.sender, k.nonce, begin.Add(k.after)); failed != nil {
			code = failed.code
		}
		if code != k.code {
			t.Errorf("%s %s after %s: %q, want %q", k.sender, k.nonce, k.after, code, k.code)
		}
	}
}

// Many senders together have a limit, so that they cannot fill the memory of a node.
func TestAttackManySendersFillTheNonces(t *testing.T) {
	t.Parallel()
	var table nonceTable
	now := time.Now()
	for i := range noncesMax {
		if failed := table.add(fmt.Sprint(i%100), fmt.Sprint(i), now); failed != nil {
			t.Fatalf("nonce %d: %+v", i, failed)
		}
	}
	if failed := table.add("late", "n", now); failed == nil || failed.code != "429" {
		t.Errorf("one nonce more than there may be: %+v", failed)
	}
	if failed := table.add("late", "n", now.Add(noncePeriod)); failed != nil {
		t.Errorf("in the next period: %+v", failed)
	}
}
