package supervisor

import (
	"fmt"

	"github.com/troupe-run/troupe/agent"
)

// CancelResult is the account of a run's cancel: who was told, who has stopped
// by its own word, who has not yet, and who was given up.
type CancelResult struct {
	Why     string      `json:"why,omitempty"`
	Now     bool        `json:"now,omitempty"`
	Agents  int         `json:"agents"`  // that lived when it came
	Stopped int         `json:"stopped"` // and have said since that they have ended
	Pending []Straggler `json:"pending"` // that have not said so yet
	Orphans []Straggler `json:"orphans"` // that were given up: nobody knows of them
	TookMS  int64       `json:"took_ms"` // until now, or until the last of them
	Text    string      `json:"text"`    // 17 of 17 stopped, 0 orphans
}

// Straggler is an agent that has not said that it has stopped, and where it was
// last heard of.
type Straggler struct {
	ID   agent.ID `json:"id"`
	Node string   `json:"node,omitempty"`
}

// stops is the account of the cancel as it stands; nil where nobody has canceled.
func (s State) stops() *CancelResult {
	if s.Cancel == nil {
		return nil
	}
	c := &CancelResult{Why: s.Cancel.Why, Now: s.Cancel.Now, Agents: s.Told, Pending: []Straggler{}, Orphans: []Straggler{}}
	s.Members(func(m Member) {
		who := Straggler{ID: m.ID, Node: m.Node}
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

// heardOf counts one that was given up among those that have stopped: it has
// said so after all.
func (s State) heardOf(m Member) State {
	if !m.Done || !m.Silent {
		return s
	}
	m.Silent = false
	return s.put(m)
}
