package activation

import "github.com/troupe-run/troupe/supervisor"

// StateGap is how many entries of a supervisor's log may follow the one up to which its state was
// published: a reader reads that many entries, however long the log is.
const StateGap = 64

// shownState is what was last published of a run's state.
type shownState struct {
	key supervisor.SummaryKey
	n   uint64 // entries read then; 0: nothing was published
}

// publishState publishes the state of a run when its Summary has changed, and every StateGap
// entries. A replay publishes nothing until the activation is current.
func publishState(s *stepContext) {
	if s.Super == nil || s.Reader.Phase != Active && s.Reader.Phase != Closed || s.Reader.Deleted {
		return
	}
	if key := s.Super.State.SummaryKey(); s.shown.n == 0 || key != s.shown.key || s.Reader.N-s.shown.n >= StateGap {
		s.shown = shownState{key, s.Reader.N}
		s.addActions(PublishState{s.Super.State, s.last})
	}
}
