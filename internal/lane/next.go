package lane

import "github.com/troupe-run/troupe/agent/spec"

// Phase is how far a run is, by its own log.
type Phase int

// Phases of a run.
const (
	Missing  Phase = iota // it has no log: it was deleted
	Unbegun               // it was opened, and waits for its turn
	Live                  // it has begun
	Finished              // it has ended
)

// Standing is what the log of a run says.
type Standing struct {
	Phase   Phase
	Reason  spec.Reason // of a finished run
	History bool        // it left a history
}

// Action is what a node does next about a lane.
//
//sumtype:decl
type Action interface{ action() }

// Append appends a fact to the lane's log and reads the log again.
type Append struct{ Fact Fact }

// Start gives the active run its history and the word to begin. Repeating it is harmless.
type Start struct{ Run string }

// Cancel ends a run that was taken out of the queue.
type Cancel struct{ Run string }

// LookAgain comes back to the lane in a while: another process has begun the active run, and may have died
// before it started the run.
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
	act, err := s.nextOfQueue(me, nowMS, standing)
	if _, rests := act.(Rest); !rests || err != nil {
		return act, err
	}
	for _, r := range s.Runs { // nothing keeps the lane: what was taken out of the queue must end, too
		if r.Status != Dropped {
			continue
		}
		is, err := standing(r.ID)
		if err != nil {
			return nil, err
		}
		if is.Phase == Unbegun {
			return Cancel{r.ID}, nil
		}
		return Append{Over{Run: r.ID, Reason: is.Reason}}, nil
	}
	return act, nil
}

func (s *State) nextOfQueue(me string, nowMS int64, standing func(run string) (Standing, error)) (Action, error) {
	if r, busy := s.ActiveRun(); busy {
		return s.nextOfActive(r, me, nowMS, standing)
	}
	r, waits := s.FirstWaiting()
	if !waits {
		return Rest{}, nil
	}
	is, err := standing(r.ID)
	switch {
	case err != nil:
		return nil, err
	case is.Phase == Finished, is.Phase == Missing: // canceled or deleted while it waited
		return Append{Over{Run: r.ID, Reason: is.Reason}}, nil
	}
	return Append{Begun{Run: r.ID, By: me}}, nil
}

func (s *State) nextOfActive(r Run, me string, nowMS int64, standing func(string) (Standing, error)) (Action, error) {
	is, err := standing(r.ID)
	switch {
	case err != nil:
		return nil, err
	case is.Phase == Finished, is.Phase == Missing:
		return Append{Over{Run: r.ID, Reason: is.Reason, History: is.History}}, nil
	case is.Phase == Live:
		return Rest{}, nil
	case r.By == me || nowMS-r.BegunMS >= StartPatienceMS: //mutant:dead-starter-keeps-the-lane
		return Start{r.ID}, nil
	}
	return LookAgain{StartPatienceMS - max(0, nowMS-r.BegunMS)}, nil
}
