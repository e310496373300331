package top

import (
	"maps"
	"slices"
	"time"
)

// polls are the requests that the screen repeats; at most one of each kind is in flight.
type polls struct {
	pending map[Effect]bool
	last    map[Effect]time.Time
}

func newPolls() polls { return polls{map[Effect]bool{}, map[Effect]time.Time{}} }

// answered records that an effect was answered.
func (p *polls) answered(e Effect, at time.Time) {
	if p.pending[e] {
		delete(p.pending, e)
		p.last[e] = at
	}
}

// askNow makes every idle poll due now.
func (p *polls) askNow() { clear(p.last) }

// poll is a request, and how often it is repeated.
type poll struct {
	effect Effect
	every  time.Duration
}

// due returns the requests to send now.
func (p *polls) due(m *Model) []Effect {
	wanted := wantedPolls(m)
	if !m.lost.IsZero() {
		wanted = []poll{{FetchQuestions{}, probeInterval}}
	}
	maps.DeleteFunc(p.last, func(e Effect, _ time.Time) bool {
		return !slices.ContainsFunc(wanted, func(w poll) bool { return w.effect == e })
	})
	var effects []Effect
	for _, w := range wanted {
		last, asked := p.last[w.effect]
		if p.pending[w.effect] || asked && m.now.Sub(last) < w.every {
			continue
		}
		p.pending[w.effect] = true
		effects = append(effects, w.effect)
	}
	return effects
}

// wantedPolls returns the requests whose answers the view shows.
func wantedPolls(m *Model) []poll {
	wanted := []poll{{FetchQuestions{}, listInterval}}
	switch m.view {
	case viewRuns:
		wanted = append(wanted, poll{FetchRuns{runsMax}, listInterval})
	case viewNodes:
		wanted = append(wanted, poll{FetchNodes{}, listInterval})
	}
	r := m.run
	if r == nil {
		return wanted
	}
	if r.stale || !r.ended {
		wanted = append(wanted, poll{FetchRun{r.id}, listInterval})
	}
	switch {
	case m.view == viewTranscript && r.agent != "" && r.transcript.stale:
		wanted = append(wanted, poll{FetchTranscript{r.id, r.agent}, transcriptInterval})
	case (m.view == viewLog || m.view == viewEntry) && r.entries.stale && len(r.entries.starts) > 0:
		wanted = append(wanted, poll{FetchEntries{r.id, r.entries.agent, r.entries.after()}, listInterval})
	case m.view == viewBudget && r.budgetStale:
		wanted = append(wanted, poll{FetchBudget{r.id}, listInterval})
	}
	return wanted
}
