package agent

// Forked says that a fork has copied this log from that of another run: what seems to be under way was begun by the
// original. It comes once, behind the copied entries and before the fork's first activation.
type Forked struct {
	// Of is the run, agent and point that was forked; "": the run itself was moved into another directory, so what is
	// under way is its own, as after a crash.
	Of string `msgpack:"o"`
	// Note is for the model, at the next turn boundary.
	Note string `msgpack:"t,omitempty"`
	// First: the mark comes before the task. The note, and a message of a user that was read before the
	// task, are in the first request. Without it they wait for the next turn boundary, as in logs in which a
	// message of a user overtook the task.
	First bool `msgpack:"f,omitempty"`
}

// Kind is the fact's word in logs.
func (Forked) Kind() string { return "forked" }

// fork is what an agent knows of the work that its original had under way at the cut.
type fork struct {
	First     bool // the mark came before the task
	Copied    bool // the log was copied, and no activation of the fork has begun
	Originals bool // the current activation began with work of the original under way
}

func handleForked(s *State, f Forked) *State {
	if s.Phase == "" && !f.First || s.Phase == Done {
		return s
	}
	s.Fork.First = s.Phase == ""
	s.Fork.Copied = s.Fork.Copied || f.Of != "" //mutant:fork-is-not-marked
	if f.Note != "" {
		s.Remarks = append(s.Remarks[:len(s.Remarks):len(s.Remarks)], f.Note)
	}
	return s
}

// resume begins an activation. again: it is the current one, which claims once more. undecided: the agent waits for an
// answer about its node, and until then the work of the original stays as it was found.
func (f fork) resume(again, undecided bool) fork {
	if again {
		return f
	}
	return fork{Originals: f.Copied || f.Originals && undecided}
}
