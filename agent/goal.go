package agent

// Goal counts how often a claimed completion was sent back by the loop itself.
type Goal struct{}

// pursue sends a claimed completion back: it lacks what the task requires, or
// there is budget left to use. busy is false when it may stop.
func pursue(s State) (next State, fx []Effect, busy bool) { return s, nil, false }
