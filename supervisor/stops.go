package supervisor

import (
	"fmt"

	"github.com/troupe-run/troupe/agent/event"
)

// cancelProgress returns the progress of the cancel; nil if the run was not canceled.
func (s State) cancelProgress() *event.CancelResult {
	if s.Cancel == nil {
		return nil
	}
	c := &event.CancelResult{Why: s.Cancel.Why, By: s.Cancel.By, Now: s.Cancel.Now, Agents: s.CancelTargets, Pending: []event.Straggler{}, Orphans: []event.Straggler{}}
	s.Members(func(m Member) {
		who := event.Straggler{ID: m.ID, Node: m.Node}
		switch {
		case !m.Done:
			c.Pending = append(c.Pending, who)
		case m.Silent:
			c.Orphans = append(c.Orphans, who)
		}
	})
	c.Stopped = max(0, c.Agents-len(c.Pending)-len(c.Orphans))
	until := s.Now
	if s.Ended != 0 {
		until = s.Ended
	}
	c.TookMS = max(0, until-s.CanceledAt)
	c.Text = fmt.Sprintf("%d of %d stopped, %d orphans", c.Stopped, c.Agents, len(c.Orphans))
	if n := len(c.Pending); n > 0 {
		c.Text += fmt.Sprintf(", %d not yet", n)
	}
	return c
}
