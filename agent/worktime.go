package agent

// Limits count time at work. State.Began is where the clock of an agent began,
// moved on by all time that is not work:
//
//   - while a person is asked (State.Parked, see unpark);
//   - while nothing is left to do but to wait for children: their own clocks run, each
//     within what its parent had left when it delegated, and what a child has worked
//     counts for its parent when it answers, so a child that is parked costs nothing;
//   - while no process had the agent: from its last entry to the claim that follows;
//   - while the machine slept past a limit: from the last entry to the next one, where a
//     timer was due between them and did not come. So no limit and no patience ends for
//     a sleep alone; work that went on before it, since the last entry, is forgiven, too.
//     A sleep that is shorter than what was left of a limit shows nowhere, and counts.
//
// All of it comes from the stamps of entries. Tasks of older rules count the clock on
// the wall, but for the wait for a person.

// WorkRules are the first rules under which limits count time at work and actors ask
// each other for what was lost.
const WorkRules = 2

// restGraceMS is how late an actor may be woken by the clock before that says that
// nobody was there to wake it.
const restGraceMS = 60_000

const (
	// TimeoutMaxMS is the longest limit of time that a client may ask for.
	TimeoutMaxMS = 366 * 24 * 3600 * 1000
	// hardGraceMS is at least left between the soft limit and the hard one.
	hardGraceMS = 60_000
)

// HardLimitMS is the limit that ends an agent which is to sum up after soft.
func HardLimitMS(soft int64) int64 { return soft + max(hardGraceMS, soft/3) }

// countsWork: the limits of the agent count time at work.
func (s State) countsWork() bool { return s.Task.Rules >= WorkRules }

// clock is how long the agent has been at work, in milliseconds.
func (s State) clock() int64 {
	now := s.Now
	switch {
	case s.Stands:
		now = s.Stood
	case s.Query.Query != "":
		now = s.Parked
	}
	return max(0, now-s.Began)
}

// worked is what the end of an agent says of its clock; 0: it was not counted.
func (s State) worked() int64 {
	if !s.countsWork() {
		return 0
	}
	return s.Worked
}

// awaitsChildren: others work for this agent, and it does nothing meanwhile.
func (s State) awaitsChildren() bool {
	switch {
	case s.Phase == Waiting && s.Idle:
		return len(s.Away) > 0
	case s.Phase != Acting:
		return false
	}
	children := 0
	for _, c := range s.Calls {
		switch {
		case c.Stage == Running && c.delegate():
			children++
		case c.Stage == Gated && c.Person != "": // its question is put when the batch has ended
		case c.Stage == Running || c.Stage == Starting || c.Stage == Retrying || c.Stage == Gated:
			return false
		}
	}
	return children > 0
}

// stand stops the clock where the agent begins to wait for children, and sets it going
// where the wait is over.
func (s State) stand(fx []Effect) (State, []Effect) {
	waits := s.awaitsChildren()
	switch {
	case !s.countsWork() || s.Phase == "" || s.Phase == Done:
	case waits && !s.Stands: //mutant:waiting-for-children-counts
		s.Stands, s.Stood = true, s.Now
	case !waits && s.Stands:
		s.Began, s.Stands = s.Began+s.Now-s.Stood, false
		if s.Query.Query == "" {
			fx = append(fx, s.clocks()...)
		}
	}
	return s, fx
}

// credit counts the work of a child that has answered: the clock is at least where it
// was when the child began, and what the child has worked since.
func (s State) credit(born, worked int64) State {
	if behind := born + worked - s.clock(); s.countsWork() && worked > 0 && behind > 0 {
		s.Began -= behind
	}
	return s
}

// absent takes the time before a claim from the clock: since last, the stamp of the
// entry before it, nobody worked. An agent that was at rest, and was woken in time,
// had been waiting for an answer of its supervisor or for its own retry: that counts.
func (s State) absent(last int64) State {
	if !s.countsWork() || s.Phase == "" || s.Phase == Done || s.Stands || s.Query.Query != "" {
		return s
	}
	if s.Rested && s.RestDue != 0 && s.Now <= s.RestDue+restGraceMS {
		return s
	}
	return s.skip(s.Now - last) //mutant:absence-counts
}

// overslept takes the time since last from the clock if a limit of time passed meanwhile
// and was not heard of for longer than a process that runs can take: the machine slept,
// or no log could be written. A timer that comes in time says that a process ran.
func (s State) overslept(f Fact, last int64) State {
	if !s.countsWork() || s.Phase == "" || s.Phase == Done || s.Stands || s.Query.Query != "" {
		return s
	}
	soft, hard, gate := s.Began+s.Task.Limits.SoftMS, s.Began+s.Task.Limits.HardMS, s.impatientAt()
	due := hard
	if !s.Soft {
		due = min(due, soft)
	}
	if s.Pause.Waiting {
		due = min(due, gate)
	}
	if w, ok := f.(Woke); ok {
		switch w.Timer {
		case hardTimer:
			due = hard
		case gateTimer:
			due = gate
		}
	}
	if s.Now <= due+restGraceMS {
		return s
	}
	return s.skip(s.Now - last)
}

// skip moves on what the clock of the agent and its patience at a gate began with.
func (s State) skip(ms int64) State {
	ms = max(0, ms)
	s.Began += ms
	if s.Pause.Refused > 0 {
		s.Pause.Since += ms
	}
	return s
}

// TimeLimitSet gives a live agent new limits of time, from now on.
type TimeLimitSet struct {
	SoftMS int64 `msgpack:"s"`
	HardMS int64 `msgpack:"h"`
}

// Kind is the fact's word in logs.
func (TimeLimitSet) Kind() string { return "time_limit_set" }

// timeLimitSet replaces what is left by what was asked. A closing turn that has begun
// is not taken back.
func timeLimitSet(s State, f TimeLimitSet) (State, []Effect) {
	if s.Phase == "" || s.Phase == Done || f.SoftMS <= 0 || f.HardMS < f.SoftMS {
		return s, nil
	}
	at := s.clock()
	s.Task.Limits.SoftMS, s.Task.Limits.HardMS = at+f.SoftMS, at+f.HardMS
	s.Soft = false
	if s.Query.Query != "" || s.Stands {
		return s, nil
	}
	return s, s.clocks()
}

// left is what the agent has left of its time, at least a moment: a child closes
// before its parent does.
func (s State) left() (soft, hard int64) {
	if !s.countsWork() {
		return 0, 0
	}
	at := s.clock()
	return max(1, s.Task.Limits.SoftMS-at), max(1, s.Task.Limits.HardMS-at)
}
