package agent

// LoopDetected is loop.detected: the agent goes in circles. Level 1 is a nudge,
// 2 a directive, 3 a question to a person.
type LoopDetected struct {
	Tier  Tier   `json:"tier"`
	Tool  string `json:"tool"`
	Level int    `json:"level"`
	Times int    `json:"times"`
}

// watch tells what the loop has noticed of itself.
func (n *notes) watch(before, after State) {
	h := after.Habits
	if h.Loops == before.Habits.Loops {
		return
	}
	n.list = append(n.list, Note{"loop.detected", before.Turn,
		LoopDetected{Tier: h.Loop.Tier, Tool: h.Loop.Tool, Level: h.Level, Times: h.Loop.Times}})
}
