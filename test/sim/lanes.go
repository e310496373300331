package sim

import (
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/internal/lane"
)

// laneSim plays one conversation: processes post runs, advance the lane and die between any two steps, while
// runs end, are canceled, moved and taken out of the queue. It has no shells: what a run does between its
// start and its end does not matter to its lane.
type laneSim struct {
	dice
	now     int64
	entries []lane.Entry
	runs    []*laneRun
	workers []laneWorker
	moved   bool // an order was changed by a person

	whole  *lane.State // of all entries that were checked
	folded int         // how many they are
}

// laneRun is a run by its own log.
type laneRun struct {
	id       string
	phase    lane.Phase
	starts   int
	after    string // the run whose history it began with
	canceled bool
}

// laneWorker is one process that advances the lane: it reads the log, decides and acts in separate steps.
type laneWorker struct {
	name string
	read int         // how many entries it has read; -1: it is idle
	does lane.Action // that it has decided and not yet done
}

const (
	laneSteps   = 160
	laneEndMax  = 4000
	laneRunsMax = 7
	foreignRun  = "foreign" // of another owner than the others
	laneWorkers = 3
)

// simulateLane plays the lane of one seed.
func simulateLane(seed int64) error {
	s := &laneSim{dice: newDice(seed ^ 0x1a4e), now: 1, whole: &lane.State{}}
	for i := range laneWorkers {
		s.workers = append(s.workers, laneWorker{name: "process" + itoa(i), read: -1})
	}
	for step := range laneSteps + laneEndMax {
		s.now += int64(s.IntN(400))
		quiet := step >= laneSteps
		if quiet && s.isOver() {
			break
		}
		if !quiet && s.percent(35) {
			s.disturb()
		} else {
			s.work(quiet)
		}
		if err := s.check(); err != nil {
			return fmt.Errorf("seed %d, lane step %d: %s: %w", seed, step, oneActiveRunPerLane, err)
		}
	}
	if err := s.checkEnd(); err != nil {
		return fmt.Errorf("seed %d, lane at its end: %s: %w", seed, oneActiveRunPerLane, err)
	}
	return nil
}

// disturb is what people and crashes do.
func (s *laneSim) disturb() {
	switch s.IntN(8) {
	case 0, 1, 2:
		if len(s.runs) < laneRunsMax {
			r := &laneRun{id: "r" + itoa(len(s.runs)), phase: lane.Unbegun} // its log comes first
			s.runs = append(s.runs, r)
			if s.percent(80) { // else the process died in between
				s.append(lane.Enqueued{Run: r.id})
			}
		}
	case 3:
		w := &s.workers[s.IntN(len(s.workers))]
		w.read, w.does = -1, nil // the process dies, and starts again under another name
		w.name += "'"
	case 4:
		if r := s.anyRun(); r != nil && r.phase == lane.Unbegun {
			r.phase, r.canceled = lane.Finished, true
		}
	case 5:
		if r, b := s.anyRun(), s.anyRun(); r != nil {
			s.moved = true
			s.append(lane.Moved{Run: r.id, Before: b.id})
		}
	case 6:
		if r := s.anyRun(); r != nil && s.percent(30) {
			s.moved = true
			s.append(lane.Removed{Run: r.id})
		}
	case 7:
		if r := s.anyRun(); r != nil && s.percent(20) {
			s.append(lane.Enqueued{Run: r.id}) // the client repeats its request
		} else if s.percent(20) {
			s.append(lane.Deleted{})
		} else if len(s.fold(len(s.entries)).Runs) > 0 {
			s.append(lane.Enqueued{Run: foreignRun, Owner: "other"}) // two owners began the conversation at the same moment
		}
	}
}

// work lets one process, or one live run, do its next step.
func (s *laneSim) work(quiet bool) {
	if s.percent(30) {
		if r := s.anyRun(); r != nil && r.phase == lane.Live {
			r.phase = lane.Finished
		}
		return
	}
	w := &s.workers[s.IntN(len(s.workers))]
	switch {
	case w.does != nil:
		s.act(w)
	case w.read < 0:
		w.read = len(s.entries)
	default:
		state := s.fold(w.read)
		w.does, _ = state.Next(w.name, s.now, s.standing)
		w.read = -1
	}
	if quiet { // a process that takes up a run whose opener died joins it to its lane
		if r := s.anyRun(); r != nil && r.phase == lane.Unbegun {
			state := s.fold(len(s.entries))
			if _, joined := state.Find(r.id); !joined {
				s.append(lane.Enqueued{Run: r.id})
			}
		}
	}
}

func (s *laneSim) act(w *laneWorker) {
	switch a := w.does.(type) {
	case lane.Append:
		s.append(a.Fact)
	case lane.Start:
		if r := s.findRun(a.Run); r.phase == lane.Unbegun {
			state := s.fold(len(s.entries))
			r.phase = lane.Live
			r.starts++
			if h := state.Histories(); len(h) > 0 {
				r.after = h[0].ID
			}
		}
	case lane.Cancel:
		if r := s.findRun(a.Run); r.phase == lane.Unbegun {
			r.phase, r.canceled = lane.Finished, true
		}
	}
	w.does = nil
}

func (s *laneSim) append(f lane.Fact) {
	s.entries = append(s.entries, lane.Entry{Place: uint64(len(s.entries) + 1), At: s.now, Fact: f})
}

func (s *laneSim) fold(n int) *lane.State {
	state := &lane.State{}
	for _, e := range s.entries[:n] {
		state.Apply(e)
	}
	return state
}

func (s *laneSim) standing(run string) (lane.Standing, error) {
	r := s.findRun(run)
	return lane.Standing{Phase: r.phase, History: r.starts > 0}, nil
}

func (s *laneSim) anyRun() *laneRun {
	if len(s.runs) == 0 {
		return nil
	}
	return s.runs[s.IntN(len(s.runs))]
}

func (s *laneSim) findRun(id string) *laneRun {
	for _, r := range s.runs {
		if r.id == id {
			return r
		}
	}
	panic("no run " + id)
}

// check is what holds at every moment: one active run in a lane.
func (s *laneSim) check() error {
	live := 0
	for _, r := range s.runs {
		if r.phase == lane.Live {
			live++
		}
		if r.starts > 1 {
			return fmt.Errorf("%s began %d times", r.id, r.starts)
		}
	}
	if live > 1 {
		return fmt.Errorf("%d runs of one conversation are active", live)
	}
	return s.checkEntries()
}

// checkEntries checks the lane after each new entry.
func (s *laneSim) checkEntries() error {
	if s.folded == len(s.entries) {
		return nil
	}
	for _, e := range s.entries[s.folded:] {
		s.whole.Apply(e)
	}
	s.folded = len(s.entries)
	active := 0
	for i, r := range s.whole.Runs {
		if r.ID == foreignRun {
			return fmt.Errorf("a run of another owner is in the lane")
		}
		if slices.ContainsFunc(s.whole.Runs[:i], func(x lane.Run) bool { return x.ID == r.ID }) {
			return fmt.Errorf("%s is in its lane twice", r.ID)
		}
		if r.Status == lane.Active {
			active++
		}
	}
	if active > 1 {
		return fmt.Errorf("%d runs of one lane are active", active)
	}
	return nil
}

func (s *laneSim) isOver() bool {
	for _, r := range s.runs {
		if r.phase != lane.Finished {
			return false
		}
	}
	return true
}

// checkEnd is what holds once nothing disturbs the lane any more: no message is lost, and each run but the
// first continues the one that ended before it.
func (s *laneSim) checkEnd() error {
	for _, r := range s.runs {
		switch {
		case r.phase != lane.Finished:
			return fmt.Errorf("%s never ended: %d", r.id, r.phase)
		case r.starts == 0 && !r.canceled:
			return fmt.Errorf("%s was lost", r.id)
		case r.after == r.id:
			return fmt.Errorf("%s continues itself", r.id)
		}
	}
	return nil
}
