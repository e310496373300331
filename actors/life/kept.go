package life

import (
	"fmt"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/model"
)

// callsKept is how many calls of one reply are kept at all: twice what may run.
const callsKept = 2 * agent.ReplyCallsMax

// Kept is what of a reply may become an entry, whole or partial: a hostile one
// may hold any number of calls, and the loop runs far fewer.
func Kept(r model.Reply) model.Reply {
	n := min(len(r.Message.Calls), callsKept)
	r.Message.Calls = r.Message.Calls[:n:n]
	return r
}

// Smaller replaces the body of an own entry that is too large, or that no
// decoder would take, by one that says so.
func Smaller(kind string, body any) (string, any) {
	switch b := body.(type) {
	case agent.Replied:
		return "failed", agent.Failed{Lease: b.Lease, Class: model.Undecodable, Detail: "the reply is too large to be kept", TookMS: b.TookMS,
			Reply: model.Reply{Usage: b.Reply.Usage, UsageKnown: b.Reply.UsageKnown}}
	case agent.Failed:
		b.Reply.Message, b.Detail = model.Message{}, "the partial reply is too large to be kept"
		return kind, b
	case agent.Returned:
		return kind, agent.Returned{Call: b.Call, Attempt: b.Attempt, Error: true, TookMS: b.TookMS, Ref: b.Ref, Size: b.Size,
			Text: fmt.Sprintf("the result of %d bytes is too large to be kept", len(b.Text))}
	case agent.Hooked:
		// A decision stands; what came with it is gone.
		answers := make([]agent.HookAnswer, len(b.Answers))
		for i, a := range b.Answers {
			answers[i] = agent.HookAnswer{Hook: a.Hook, Decision: a.Decision, Failed: "the answer is too large to be kept", TookMS: a.TookMS}
		}
		b.Answers = answers
		return kind, b
	}
	return kind, body
}
