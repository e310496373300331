package agent

import "github.com/troupe-run/troupe/model"

// Fold is what stands for the beginning of the transcript in prompts. The
// transcript itself keeps every message.
type Fold struct {
	Upto int // messages of History that are folded
	Text string
	Deep bool // it was made by a deep prune
	Turn int  // when
}

// Folding is a compaction under way.
type Folding struct {
	Upto int
	Why  Transition // of the turn that waits for it
}

// compact begins a compaction where the prompt has grown too large for the
// window; busy is false where there is nothing to do.
func compact(s State, _ Transition) (next State, fx []Effect, busy bool) { return s, nil, false }

// summarized ends a compaction with the summary that a model wrote.
func summarized(s State, _ model.Reply) (State, []Effect) { return s, nil }

// unsummarized ends a compaction whose summary failed.
func unsummarized(s State) (State, []Effect) { return s, nil }

// tooLong takes the provider's word that the prompt does not fit: one reactive
// compaction in the life of the agent, then the end. again is false for the end.
func tooLong(s State) (next State, fx []Effect, again bool) { return s, nil, false }
