package agent

// Data of notes about the relatives of an agent.
type (
	// AgentSaid is message.agent: what another agent of the run said to this one.
	AgentSaid struct {
		From  ID     `json:"from"`
		Name  string `json:"name,omitempty"`
		Text  string `json:"text,omitempty"`
		Bytes int    `json:"bytes"`
	}
	// AgentWaiting is agent.waiting: it has said that it is done, and waits for its
	// children in the background.
	AgentWaiting struct {
		Children []ID `json:"children"`
	}
)

// kin tells what was heard of relatives, and who waits for them.
func (n *notes) kin(before State, e Event, after State) {
	f, ok := e.Fact.(Messaged)
	switch {
	case !ok || len(after.Mail) == len(before.Mail) && len(after.History) == len(before.History): // it means nothing
	case f.Call != "":
		n.add("delegation.finished", ToolNote{Call: f.Call, Tool: delegateTool, Child: f.From, Error: f.Error, Bytes: len(f.Text), Text: f.Text})
	default:
		n.add("message.agent", AgentSaid{From: f.From, Name: f.Name, Text: f.Text, Bytes: len(f.Text)})
	}
	if after.Idle && !before.Idle {
		ids := make([]ID, len(after.Away))
		for i, a := range after.Away {
			ids[i] = a.Child
		}
		n.add("agent.waiting", AgentWaiting{Children: ids})
	}
}
