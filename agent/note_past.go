package agent

import "github.com/troupe-run/troupe/agent/event"

// kept notes where the whole of a clipped result is stored, or that it is lost.
func (n *notes) kept(before State, e Event) {
	f, ok := e.Fact.(Returned)
	if !ok || f.Size == 0 {
		return
	}
	for i, note := range n.list {
		if d, ok := note.Data.(event.ToolCall); ok && note.Kind == event.KindToolFinished && d.Call == f.Call {
			d.Ref, d.Size = f.Ref, f.Size
			n.list[i].Data = d
		}
	}
	if i := before.call(f.Call); f.Ref == "" && i >= 0 && before.Calls[i].Stage == Running {
		n.add(event.KindWarningRaised, event.Warning{What: "a whole result of " + before.Calls[i].Name + " was not kept", Call: f.Call})
	}
}

// adopted adds a recalled history to the state before the task, so that observers
// do not see the events of another run again.
func (s State) adopted(e Event, after State) State {
	if _, ok := e.Fact.(Submitted); ok && s.Phase == "" {
		s.History = after.History[:after.Recalled]
	}
	return s
}
