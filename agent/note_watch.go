package agent

import "github.com/troupe-run/troupe/agent/event"

// watch notes a loop that the agent has detected in itself.
func (n *notes) watch(before, after State) {
	h := after.Habits
	if h.Loops == before.Habits.Loops {
		return
	}
	n.list = append(n.list, event.Event{Kind: event.KindLoopDetected, Turn: before.Turn,
		Data: event.LoopDetected{Tier: string(h.Loop.Tier), Tool: h.Loop.Tool, Level: h.Level, Times: h.Loop.Times}})
}
