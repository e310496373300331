package node

import (
	"sync"

	"github.com/troupe-run/troupe/internal/control"
	"github.com/troupe-run/troupe/supervisor"
)

// laneNews passes on which conversations may go on: runs report that before the control service exists.
type laneNews struct {
	mu      sync.Mutex
	control *control.Control
	early   [][2]string // conversations, and runs that wait in them
}

// add tells that a conversation may go on. run waits in its lane and may not have joined it; "": none.
func (l *laneNews) add(conversation, run string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.control == nil {
		l.early = append(l.early, [2]string{conversation, run})
		return
	}
	l.control.LaneKnown(conversation, run)
}

// open passes on what came before the control service.
func (l *laneNews) open(c *control.Control) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.control = c
	for _, e := range l.early {
		c.LaneKnown(e[0], e[1])
	}
	l.early = nil
}

// recordState passes on that a run waits in a lane, or that it has ended.
func (l *laneNews) recordState(run string, s supervisor.State) {
	switch {
	case !s.Run.InLane, s.Run.Conversation == "": // a fork of a run of a conversation is in none
	case s.Phase == supervisor.Queued:
		l.add(s.Run.Conversation, run)
	case s.Phase == supervisor.Over:
		l.add(s.Run.Conversation, "")
	}
}
