package agentprotocol

import (
	"errors"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
)

// Only a word that means yes approves a call; a question of an agent takes any text.
func TestDecisionsOfReplies(t *testing.T) {
	call := question{"root", event.OpenQuery{Digest: "d", Reason: spec.NeedsHuman, Call: "1-0"}}
	lost := question{"root", event.OpenQuery{Reason: spec.ResumeUnsafe, Call: "1-0"}}
	asked := question{"root", event.OpenQuery{Reason: spec.NeedsHuman, Call: "1-0"}}
	loop := question{"root", event.OpenQuery{Reason: spec.NeedsHuman}}
	for _, k := range []struct {
		q        question
		reply    string
		decision spec.Decision
		text     string
	}{
		{call, "yes", spec.Approve, ""}, {call, " Y ", spec.Approve, ""}, {call, "APPROVE", spec.Approve, ""}, {call, "Approve.", "", ""}, {call, "YES!", "", ""}, {call, "yes:", "", ""}, {call, "no", spec.Deny, ""}, {call, "No, use b.txt", spec.Deny, "use b.txt"},
		{call, "skip", spec.Skip, ""}, {call, "yes but not now", "", ""}, {call, "yesterday", "", ""}, {call, "Sure", "", ""}, {call, "true", "", ""},
		{lost, "yes", spec.Approve, ""}, {lost, "it worked", "", ""}, {lost, "deny", spec.Deny, ""},
		{asked, "no", spec.TextOnly, "no"}, {asked, "the red one", spec.TextOnly, "the red one"},
		{loop, "no more of this", spec.Deny, "more of this"}, {loop, "try b.txt", spec.TextOnly, "try b.txt"},
	} {
		d, text, err := k.q.decide(k.reply)
		if d != k.decision || text != k.text || (err != nil) != (k.decision == "") || err != nil && !errors.Is(err, errNoDecision) {
			t.Errorf("%q: %q %q %v", k.reply, d, text, err)
		}
	}
}
