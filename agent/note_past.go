package agent

// Warned is warning.raised: something that an operator may want to look into
// and that the run goes on after.
type Warned struct {
	What    string `json:"what"`
	Why     string `json:"why,omitempty"`
	Call    string `json:"call,omitempty"`    // that it is about
	Now     bool   `json:"now,omitempty"`     // of a cancel
	Live    int    `json:"live,omitempty"`    // agents, at a cancel
	Stopped int    `json:"stopped,omitempty"` // agents, after a cancel
}

// kept tells where the whole of a clipped result is, or that it is lost.
func (n *notes) kept(before State, e Event) {
	f, ok := e.Fact.(Returned)
	if !ok || f.Size == 0 {
		return
	}
	for i, note := range n.list {
		if d, ok := note.Data.(ToolNote); ok && note.Kind == "tool.finished" && d.Call == f.Call {
			d.Ref, d.Size = f.Ref, f.Size
			n.list[i].Data = d
		}
	}
	if i := before.call(f.Call); f.Ref == "" && i >= 0 && before.Calls[i].Stage == Running {
		n.add("warning.raised", Warned{What: "a whole result of " + before.Calls[i].Name + " was not kept", Call: f.Call})
	}
}

// adopted makes a history that was recalled a part of the state before the
// task: what happened in another run is not told again.
func (s State) adopted(e Event, after State) State {
	if _, ok := e.Fact.(Submitted); ok && s.Phase == "" {
		s.History = after.History[:after.Recalled]
	}
	return s
}
