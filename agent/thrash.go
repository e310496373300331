package agent

// Habits are what the loop has noticed of itself.
type Habits struct{}

// watched looks at a batch that has ended: a loop that it sees is answered with
// a nudge, then a directive, then a question. busy is true when the loop waits
// for a person now, or has ended.
func watched(s State, _ []Call, why Transition) (next State, then Transition, fx []Effect, busy bool) {
	return s, why, nil, false
}

// broken escalates a tool that fails again and again on one target, and a model
// that proposes forbidden tools again and again.
func broken(s State, _ []Call) (next State, fx []Effect, busy bool) { return s, nil, false }
