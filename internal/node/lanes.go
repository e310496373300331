package node

import (
	"sync"

	"github.com/troupe-run/troupe/internal/control"
	"github.com/troupe-run/troupe/internal/schedule"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// laneNews passes on which conversations and schedules may go on: runs and logs report that before the control service
// exists.
type laneNews struct {
	mu      sync.Mutex
	control *control.Control
	early   []func(*control.Control)
}

// add tells that a conversation may go on. run waits in its lane and may not have joined it; "": none.
func (l *laneNews) add(conversation, run string) {
	l.pass(func(c *control.Control) { c.LaneKnown(conversation, run) })
}

// addLog tells that a log without an actor has a new entry, or is this node's from now on.
func (l *laneNews) addLog(at mailbox.Address) {
	if id, ok := schedule.OfLog(at); ok {
		l.pass(func(c *control.Control) { c.WatchSchedule(id) })
	}
}

func (l *laneNews) pass(news func(*control.Control)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.control == nil {
		l.early = append(l.early, news)
		return
	}
	news(l.control)
}

// open passes on what came before the control service.
func (l *laneNews) open(c *control.Control) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.control = c
	for _, news := range l.early {
		news(c)
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
