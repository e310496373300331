package agent

import (
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
)

// kin notes the messages of related agents, and when the agent begins to wait for its children.
func (n *notes) kin(before State, e Event, after State) {
	f, ok := e.Fact.(Messaged)
	switch {
	case !ok || len(after.Mail) == len(before.Mail) && len(after.History) == len(before.History): // it has no effect
	case f.Call != "":
		n.add(event.KindDelegationFinished, event.ToolCall{Call: f.Call, Tool: delegateTool, Child: f.From, Error: f.Error, Bytes: len(f.Text), Text: f.Text})
	default:
		n.add(event.KindMessageAgent, event.AgentSaid{From: f.From, Name: f.Name, Text: f.Text, Bytes: len(f.Text)})
	}
	if after.Idle && !before.Idle {
		ids := make([]spec.ID, len(after.Away))
		for i, a := range after.Away {
			ids[i] = a.Child
		}
		n.add(event.KindAgentWaiting, event.AgentWaiting{Children: ids})
	}
}
