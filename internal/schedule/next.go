package schedule

// Action is what a node does next about a schedule.
//
//sumtype:decl
type Action interface{ action() }

// Append appends a fact to the schedule's log and reads the log again.
type Append struct{ Fact Due }

// Open opens the run of a due time, which was decided, and appends that it did. Repeating it is harmless.
type Open struct {
	DueMS  int64
	Run    string
	Missed int // earlier due times that the run replaces
}

// Wait comes back at the next due time.
type Wait struct{ UntilMS int64 }

// Listen takes the messages of the trigger.
type Listen struct{}

// Stop does nothing: nothing is due any more.
type Stop struct{}

func (Append) action() {}
func (Open) action()   {}
func (Wait) action()   {}
func (Listen) action() {}
func (Stop) action()   {}

// Next decides what a node does about the schedule named id at a time. isWorking reports whether a run has not ended.
func (s *State) Next(id string, nowMS int64, isWorking func(run string) (bool, error)) (Action, error) {
	switch {
	case !s.exists():
		return Stop{}, nil
	case s.Rule.On != "":
		return Listen{}, nil
	case s.Pending != 0:
		return Open{DueMS: s.Pending, Run: s.RunID(id, s.Pending, ""), Missed: s.PendingMissed}, nil
	}
	times := s.Rule.times()
	next, ok := times(s.LastMS)
	switch {
	case !ok:
		return Stop{}, nil
	case next > nowMS:
		return Wait{next}, nil
	}
	f := s.chooseDue(times, next, nowMS)
	f.AfterMS = s.LastMS
	if f.Why == "" && s.Rule.Overlap == OverlapSkip && s.LastRun != "" {
		works, err := isWorking(s.LastRun)
		if err != nil {
			return nil, err
		}
		if works {
			f.Why = WhyOverlap
		}
	}
	return Append{f}, nil
}

// chooseDue decides about the due times from first up to now, by the rule for missed ones. Of more than lookMax, it
// decides about the older half: they begin no run by any rule, because there are more than MissedMax newer ones.
func (s *State) chooseDue(times func(int64) (int64, bool), first, nowMS int64) Due {
	count, late := 0, 0 // of the due times, and of those that were missed
	newest, newestLate := first, first
	var recent [MissedMax]int64 // the newest due times, in a ring
	half := first
	for due, ok := first, true; ok && due <= nowMS; due, ok = times(due) {
		if count == lookMax {
			return Due{DueMS: half, Missed: lookMax/2 - 1, Why: WhyLate}
		}
		recent[count%MissedMax] = due
		if count, newest = count+1, due; count == lookMax/2 {
			half = due
		}
		if nowMS-due > LateMS {
			late, newestLate = late+1, due
		}
	}
	switch {
	case s.Rule.Missed == MissedSkip && late > 0:
		return Due{DueMS: newestLate, Missed: late - 1, Why: WhyLate}
	case s.Rule.Missed == MissedAll && count > MissedMax:
		return Due{DueMS: recent[count%MissedMax], Missed: count - MissedMax}
	case s.Rule.Missed == MissedAll:
		return Due{DueMS: first}
	}
	return Due{DueMS: newest, Missed: count - 1}
}

// EarlyMS is how long a decision that had no effect came too early, by the stamps of the log: the clock of the node
// that made it is ahead. 0: it did not.
func (s *State) EarlyMS(f Due) int64 {
	if s.LastMS >= f.DueMS {
		return 0
	}
	return max(0, f.DueMS-s.StampMS)
}

const (
	// TriggerRate is how many runs the messages of one trigger begin in triggerSpanMS. Further messages wait.
	TriggerRate   = 60
	triggerSpanMS = 60_000
)

// TriggerWaitMS is how long the next message of a trigger must wait.
func (s *State) TriggerWaitMS(nowMS int64) int64 {
	if len(s.Messages) < TriggerRate {
		return 0
	}
	free := s.Messages[len(s.Messages)-TriggerRate].At + triggerSpanMS
	return max(0, min(free-nowMS, triggerSpanMS))
}
