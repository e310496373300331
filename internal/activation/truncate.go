package activation

import (
	"fmt"
	"sort"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
)

// Limits of the tool calls that the entry of one reply holds. A provider accepts at most 128
// calls of one message when they are sent back.
const (
	ReplyCallsKept = 2 * spec.ReplyCallsMax
	// ReplyBytesMax leaves room in the entry for everything but the reply.
	ReplyBytesMax = mailbox.EntryBytesMax - 8<<10
)

// TruncateReply drops tool calls from the end of a reply, whole or partial, until the rest
// fits a log entry, and reports how many. A reply may have any number of calls of any length;
// the loop runs far fewer. If not even the first call fits, TruncateReply keeps it without
// its arguments, marked as cut.
func TruncateReply(r model.Reply) (kept model.Reply, dropped int) {
	calls := r.Message.Calls
	with := func(n int) model.Reply {
		r.Message.Calls = calls[:n:n]
		return r
	}
	most := min(len(calls), ReplyCallsKept)
	if n := sort.Search(most, func(n int) bool { return !fitsEntry(with(n + 1)) }); n > 0 || most == 0 {
		return with(n), len(calls) - n
	}
	r.Message.Calls = []model.ToolCall{{Name: calls[0].Name, Cut: true}}
	if !fitsEntry(r) {
		return with(0), len(calls)
	}
	return r, len(calls) - 1
}

// fitsEntry reports whether a log entry holds a reply, and a reader decodes it.
func fitsEntry(r model.Reply) bool {
	size := len(r.Message.Text)
	for _, c := range r.Message.Calls {
		size += len(c.Name) + len(c.Args)
	}
	if size > ReplyBytesMax {
		return false
	}
	data, err := mailbox.Marshal(r)
	return err == nil && len(data) <= ReplyBytesMax && mailbox.Check(data) == nil
}

// ShrinkResult replaces the body of an own entry that is too large, or that no decoder would
// accept, by one that says so.
func ShrinkResult(kind string, body any) (string, any) {
	switch b := body.(type) {
	case agent.Replied:
		return "failed", agent.Failed{Reservation: b.Reservation, Class: model.Undecodable, Detail: "the reply is too large to be kept", TookMS: b.TookMS,
			Reply: model.Reply{Usage: b.Reply.Usage, UsageKnown: b.Reply.UsageKnown}}
	case agent.Failed:
		b.Reply.Message, b.Detail = model.Message{}, "the partial reply is too large to be kept"
		return kind, b
	case agent.Returned:
		return kind, agent.Returned{Call: b.Call, Attempt: b.Attempt, Error: true, TookMS: b.TookMS, Ref: b.Ref, Size: b.Size,
			Text: fmt.Sprintf("the result of %d bytes is too large to be kept", len(b.Text))}
	case agent.Hooked:
		// The decision stays; what came with it is dropped.
		answers := make([]spec.HookAnswer, len(b.Answers))
		for i, a := range b.Answers {
			answers[i] = spec.HookAnswer{Hook: a.Hook, Decision: a.Decision, Failed: "the answer is too large to be kept", TookMS: a.TookMS}
		}
		b.Answers = answers
		return kind, b
	}
	return kind, body
}
