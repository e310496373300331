package lane

import "github.com/troupe-run/troupe/agent/spec"

// Phase is how far a run is, by its own log.
type Phase int

// Phases of a run.
const (
	Missing  Phase = iota // it has no log: it was deleted
	Unbegun               // it was opened, and waits for its turn: its agents have done nothing
	Live                  // its agents work
	Finished              // it has ended
)

// Standing is what the log of a run says.
type Standing struct {
	Phase   Phase
	Reason  spec.Reason // of a finished run
	History bool        // it left a history
	EndedMS int64       // when a finished run ended, in Unix milliseconds; 0: unknown
	// Root is the definition of its root; HandedTo and Holder are the agent and the definition that the root has
	// handed the conversation off to.
	Root     string
	HandedTo spec.ID
	Holder   string
}

// Over is the fact that the run has ended.
func (st Standing) Over(run string) Over {
	return Over{Run: run, Reason: st.Reason, History: st.History, Root: st.Root, HandedTo: st.HandedTo, Holder: st.Holder}
}

// Action is what a node does next about a lane.
//
//sumtype:decl
type Action interface{ action() }

// Append appends a fact to the lane's log and reads the log again.
type Append struct{ Fact Fact }

// Start gives the active run its history and the entry that begins it. Repeating it is harmless.
type Start struct{ Run string }

// Cancel ends a run that was taken out of the queue.
type Cancel struct{ Run string }

// LookAgain comes back to the lane in a while: another process has claimed the start of the active run (Begun), and
// may have died before it started the run.
type LookAgain struct{ AfterMS int64 }

// Rest does nothing: the end of the active run, or the next message, brings a node back.
type Rest struct{}

func (Append) action()    {}
func (Start) action()     {}
func (Cancel) action()    {}
func (LookAgain) action() {}
func (Rest) action()      {}

// Next decides what the process named me does about a lane at a time. standing tells what the log of a run
// says; Next asks only about runs that matter now.
func (s *State) Next(me string, nowMS int64, standing func(run string) (Standing, error)) (Action, error) {
	act, err := s.nextStep(me, nowMS, standing)
	if _, rests := act.(Rest); !rests || err != nil {
		return act, err
	}
	for _, r := range s.Runs { // the active run and the queue need nothing: end what was taken out of the queue
		if r.Status != Dropped {
			continue
		}
		st, err := standing(r.ID)
		if err != nil {
			return nil, err
		}
		switch st.Phase {
		case Unbegun:
			return Cancel{r.ID}, nil
		case Finished, Missing:
			return Append{Over{Run: r.ID, Reason: st.Reason}}, nil
		case Live: // its end brings a node back
		}
	}
	return act, nil
}

// nextStep decides about the active run, or else about the first of the queue.
func (s *State) nextStep(me string, nowMS int64, standing func(run string) (Standing, error)) (Action, error) {
	if r, busy := s.ActiveRun(); busy {
		return s.stepActive(r, me, nowMS, standing)
	}
	r, waits := s.FirstWaiting()
	if !waits {
		return Rest{}, nil
	}
	st, err := standing(r.ID)
	switch {
	case err != nil:
		return nil, err
	case st.Phase == Finished, st.Phase == Missing: // canceled or deleted while it waited
		return Append{Over{Run: r.ID, Reason: st.Reason}}, nil
	}
	return Append{Begun{Run: r.ID, By: me}}, nil
}

// stepActive decides about the active run.
func (s *State) stepActive(r Run, me string, nowMS int64, standing func(string) (Standing, error)) (Action, error) {
	st, err := standing(r.ID)
	switch {
	case err != nil:
		return nil, err
	case st.Phase == Finished, st.Phase == Missing:
		return Append{st.Over(r.ID)}, nil
	case st.Phase == Live:
		return Rest{}, nil
	case r.By == me || nowMS-r.BegunMS >= StartPatienceMS: //mutant:dead-starter-keeps-the-lane
		return Start{r.ID}, nil
	}
	return LookAgain{StartPatienceMS - max(0, nowMS-r.BegunMS)}, nil // the stamp of the log may be ahead of this clock
}
