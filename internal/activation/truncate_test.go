package activation_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
)

// A reply with any number of calls of any length becomes an entry that decodes. What
// is dropped is counted, and what stays is the beginning, unchanged.
func TestAttackAReplyWithAnyCallsFitsAnEntry(t *testing.T) {
	long := func(n int) string { return `{"q":"` + strings.Repeat("x", n) + `"}` }
	for _, c := range []struct{ calls, bytes, kept int }{
		{0, 0, 0}, {1, 2, 1}, {64, 20, 64}, {128, 0, 128}, {128, 900, 128}, {129, 20, 128}, {1000, 20, 128}, {10_000, 20, 128},
		{128, 4000, 63}, {3, 100_000, 2}, {2, 300_000, 1}, {1, 300_000, 1},
	} {
		var r model.Reply
		r.Message.Text = "I look."
		for i := range c.calls {
			r.Message.Calls = append(r.Message.Calls, model.ToolCall{Name: fmt.Sprintf("search%d", i), Args: long(c.bytes)})
		}
		kept, dropped := activation.TruncateReply(r)
		if n := len(kept.Message.Calls); n < c.kept || n+dropped != c.calls || n > activation.ReplyCallsKept {
			t.Errorf("%d calls of %d bytes: %d kept, %d dropped", c.calls, c.bytes, n, dropped)
		}
		for i, call := range kept.Message.Calls {
			if call != r.Message.Calls[i] && (!call.Cut || call.Args != "" || i > 0) {
				t.Errorf("%d calls of %d bytes: call %d is %.80v", c.calls, c.bytes, i, call)
			}
		}
		data, err := mailbox.Marshal(agent.Replied{Reservation: 1, Reply: kept, Dropped: dropped})
		if err != nil || len(data) > mailbox.EntryBytesMax-4<<10 {
			t.Fatalf("%d calls of %d bytes: %d bytes, %v", c.calls, c.bytes, len(data), err)
		}
		var back agent.Replied
		if err := mailbox.Unmarshal(data, &back); err != nil || len(back.Reply.Message.Calls) != len(kept.Message.Calls) {
			t.Errorf("%d calls of %d bytes: %v", c.calls, c.bytes, err)
		}
	}
}
