// Package lane is the queue of a conversation as a value: which of its runs is active, which wait and in which
// order, and which have ended. PURE: State is what the entries of the conversation's log say, and Next
// decides what a node does about it.
//
// A conversation has a log of its own in the mailbox, "lane-<conversation>.lane". No actor owns it. Any
// node may append to it at any time, because the order of the log decides: an entry that is no longer
// true when its turn comes has no effect. So two processes that post at the same moment are ordered, and
// two nodes that start the next run at the same moment start one.
package lane

import (
	"slices"

	"github.com/troupe-run/troupe/agent/spec"
)

const (
	// QueueMax is how many runs of one conversation may wait.
	QueueMax = 100
	// StartPatienceMS is how long the node that has begun a run in the lane may take to start the run,
	// before another node starts it.
	StartPatienceMS = 5000
)

// Status is where a run stands in its lane.
type Status string

// Statuses of a run. At most one run of a lane is active.
const (
	Waiting Status = "waiting"
	Active  Status = "active"
	Ended   Status = "ended"
	Dropped Status = "dropped" // taken out of the queue; it never begins
)

// Run is one run of a conversation. Times are Unix milliseconds, by the stamps of the log.
type Run struct {
	ID       string      `json:"run_id"`
	Status   Status      `json:"status"`
	QueuedMS int64       `json:"queued_ms,omitempty"`
	BegunMS  int64       `json:"begun_ms,omitempty"`
	EndedMS  int64       `json:"ended_ms,omitempty"`
	Reason   spec.Reason `json:"stop_reason,omitempty"`
	// History says that the run left a history with which the next run begins.
	History bool `json:"history,omitempty"`
	// HandedTo is the agent of the run that has its conversation, and whose history counts; "": the root.
	HandedTo spec.ID `json:"handed_to,omitempty"`
	// By is the process that began it.
	By string `json:"-"`
}

// State is a lane up to an entry of its log. The zero value is an empty lane.
type State struct {
	// Runs are all runs: those that have begun or ended, in the order in which they did, then those that
	// wait, in the order in which they will begin.
	Runs []Run
	// Holder is the agent, by its definition, that has the conversation by a handoff; "": it was not handed off, or a
	// later message has named another agent.
	Holder string
	// Owner is the owner of all its runs; "": operators.
	Owner string
	// Entries is how many entries were applied.
	Entries int
	// Deleted is the place of the newest entry that emptied the lane; 0: there is none.
	Deleted uint64

	index map[string]int
}

// Facts of a lane's log. A fact that is not true of the lane has no effect.
type (
	// Enqueued adds a run to the end of the queue. Run is an opened run: its log says what it is.
	// A run of another owner than that of the runs before it has no place in the lane.
	Enqueued struct {
		Run   string `msgpack:"r"`
		Owner string `msgpack:"o,omitempty"`
	}
	// Adopted adds a run that began without a lane, as the active one: the conversation continues it.
	Adopted struct {
		Run   string `msgpack:"r"`
		Owner string `msgpack:"o,omitempty"`
	}
	// Begun makes the first run of the queue the active one.
	Begun struct {
		Run string `msgpack:"r"`
		By  string `msgpack:"b"`
	}
	// Over says that a run has ended, whether or not it had begun.
	Over struct {
		Run     string      `msgpack:"r"`
		Reason  spec.Reason `msgpack:"w,omitempty"`
		History bool        `msgpack:"h,omitempty"`
		// Root is the definition of its root; HandedTo and Holder are the agent and the definition that the root has handed
		// the conversation off to.
		Root     string  `msgpack:"o,omitempty"`
		HandedTo spec.ID `msgpack:"t,omitempty"`
		Holder   string  `msgpack:"n,omitempty"`
	}
	// Moved puts a waiting run before another one; "" is the end of the queue.
	Moved struct {
		Run    string `msgpack:"r"`
		Before string `msgpack:"b,omitempty"`
	}
	// Removed takes a waiting run out of the queue.
	Removed struct {
		Run string `msgpack:"r"`
	}
	// Deleted empties a lane in which no run is active or waits.
	Deleted struct{}
)

// Fact is one of the facts above.
type Fact interface{ Kind() string }

// The kinds in logs.
func (Enqueued) Kind() string { return "enqueued" }
func (Adopted) Kind() string  { return "adopted" }
func (Begun) Kind() string    { return "begun" }
func (Over) Kind() string     { return "over" }
func (Moved) Kind() string    { return "moved" }
func (Removed) Kind() string  { return "removed" }
func (Deleted) Kind() string  { return "deleted" }

// Decode makes a fact; ok is false for a kind that this program does not know.
func Decode(kind string, body func(into any) error) (f Fact, ok bool, err error) {
	switch kind {
	case Enqueued{}.Kind():
		f, err = decodeAs[Enqueued](body)
	case Adopted{}.Kind():
		f, err = decodeAs[Adopted](body)
	case Begun{}.Kind():
		f, err = decodeAs[Begun](body)
	case Over{}.Kind():
		f, err = decodeAs[Over](body)
	case Moved{}.Kind():
		f, err = decodeAs[Moved](body)
	case Removed{}.Kind():
		f, err = decodeAs[Removed](body)
	case Deleted{}.Kind():
		f, err = decodeAs[Deleted](body)
	default:
		return nil, false, nil
	}
	return f, true, err
}

func decodeAs[T Fact](body func(any) error) (Fact, error) {
	var v T
	err := body(&v)
	return v, err
}

// Entry is a fact as a lane reads it from its log.
type Entry struct {
	Place uint64
	At    int64 // Unix milliseconds
	Fact  Fact
}

// Apply applies the next entry of the log.
func (s *State) Apply(e Entry) {
	s.Entries++
	switch f := e.Fact.(type) {
	case Enqueued:
		s.addOwned(Run{ID: f.Run, Status: Waiting, QueuedMS: e.At}, f.Owner)
	case Adopted:
		if _, busy := s.ActiveRun(); len(s.Runs) == 0 && !busy {
			s.addOwned(Run{ID: f.Run, Status: Active, BegunMS: e.At}, f.Owner)
		}
	case Begun:
		s.begin(f, e.At)
	case Over:
		s.end(f, e.At)
	case Moved:
		s.move(f)
	case Removed:
		if i, ok := s.find(f.Run); ok && s.Runs[i].Status == Waiting {
			s.Runs[i].Status = Dropped
			s.moveBeforeWaiting(i)
		}
	case Deleted:
		if s.isIdle() { //mutant:lane-deleted-while-busy
			*s = State{Entries: s.Entries, Deleted: e.Place}
		}
	}
}

// addOwned adds a run, unless the lane has runs of another owner: the order of the log decides between two that began it.
func (s *State) addOwned(r Run, owner string) {
	if len(s.Runs) == 0 {
		s.Owner = owner
	}
	if s.Owner == owner { //mutant:lane-of-two-owners
		s.add(r)
	}
}

func (s *State) add(r Run) {
	if s.knows(r.ID) || r.ID == "" { //mutant:message-doubled
		return
	}
	if s.index == nil {
		s.index = map[string]int{}
	}
	s.index[r.ID] = len(s.Runs)
	s.Runs = append(s.Runs, r)
}

func (s *State) begin(f Begun, at int64) {
	_, busy := s.ActiveRun()
	first, waits := s.FirstWaiting()
	if busy || !waits || first.ID != f.Run { //mutant:two-active-runs
		return
	}
	i, _ := s.find(f.Run)
	s.Runs[i].Status, s.Runs[i].BegunMS, s.Runs[i].By = Active, at, f.By
}

func (s *State) end(f Over, at int64) {
	i, ok := s.find(f.Run)
	if !ok || s.Runs[i].Status == Ended {
		return
	}
	began := s.Runs[i].Status == Active
	s.Runs[i].Status, s.Runs[i].EndedMS, s.Runs[i].Reason = Ended, at, f.Reason
	s.Runs[i].History = f.History && began
	if !began {
		s.moveBeforeWaiting(i)
		return
	}
	s.Runs[i].HandedTo = f.HandedTo
	switch {
	case f.Holder != "":
		s.Holder = f.Holder
	case f.Root != "" && f.Root != s.Holder:
		s.Holder = ""
	}
}

// moveBeforeWaiting moves a run that no longer waits before those that do.
func (s *State) moveBeforeWaiting(i int) {
	r := s.Runs[i]
	first := slices.IndexFunc(s.Runs, func(r Run) bool { return r.Status == Waiting })
	if first < 0 || first > i {
		return
	}
	s.Runs = slices.Insert(slices.Delete(s.Runs, i, i+1), first, r)
	s.reindex(first)
}

func (s *State) move(f Moved) {
	i, ok := s.find(f.Run)
	if !ok || s.Runs[i].Status != Waiting || f.Run == f.Before {
		return
	}
	if before, there := s.find(f.Before); f.Before != "" && (!there || s.Runs[before].Status != Waiting) {
		return
	}
	r := s.Runs[i]
	s.Runs = slices.Delete(s.Runs, i, i+1)
	to := len(s.Runs)
	if f.Before != "" {
		to = slices.IndexFunc(s.Runs, func(r Run) bool { return r.ID == f.Before })
	}
	s.Runs = slices.Insert(s.Runs, to, r)
	s.reindex(min(i, to))
}

func (s *State) reindex(from int) {
	for i := from; i < len(s.Runs); i++ {
		s.index[s.Runs[i].ID] = i
	}
}

func (s *State) find(run string) (i int, ok bool) {
	i, ok = s.index[run]
	return i, ok
}

func (s *State) knows(run string) bool {
	_, ok := s.find(run)
	return ok
}

// Find returns a run of the lane.
func (s *State) Find(run string) (Run, bool) {
	i, ok := s.find(run)
	if !ok {
		return Run{}, false
	}
	return s.Runs[i], true
}

// ActiveRun returns the run that is active.
func (s *State) ActiveRun() (Run, bool) {
	return s.first(func(r Run) bool { return r.Status == Active })
}

// FirstWaiting returns the run that begins next.
func (s *State) FirstWaiting() (Run, bool) {
	return s.first(func(r Run) bool { return r.Status == Waiting })
}

func (s *State) first(is func(Run) bool) (Run, bool) {
	i := slices.IndexFunc(s.Runs, is)
	if i < 0 {
		return Run{}, false
	}
	return s.Runs[i], true
}

// LastChange returns when a run of a conversation last began to wait, began or ended, in Unix milliseconds.
func (s *State) LastChange() (changedMS int64) {
	for _, r := range s.Runs {
		changedMS = max(changedMS, r.QueuedMS, r.BegunMS, r.EndedMS)
	}
	return changedMS
}

// Queue returns the runs that wait, in the order in which they will begin.
func (s *State) Queue() []Run {
	var queue []Run
	for _, r := range s.Runs {
		if r.Status == Waiting {
			queue = append(queue, r)
		}
	}
	return queue
}

// Histories returns the runs that left a history, the newest first: the next run begins with the first of
// them that still has it.
func (s *State) Histories() []Run {
	var list []Run
	for _, r := range slices.Backward(s.Runs) {
		if r.Status == Ended && r.History {
			list = append(list, r)
		}
	}
	return list
}

// isIdle reports whether no run is active or waits.
func (s *State) isIdle() bool {
	return !slices.ContainsFunc(s.Runs, func(r Run) bool { return r.Status == Active || r.Status == Waiting })
}
