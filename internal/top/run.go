package top

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/term"
)

// openRun is the run that the screen has open.
type openRun struct {
	id       string
	style    term.Style
	info     client.RunInfo
	known    bool // info was read
	stale    bool // info is older than what happened
	followed bool // its events are being read
	ended    bool // all its events have been read
	timeline term.Timeline
	events   eventLog
	agent    string // the agent on screen; "": the first

	transcript  transcript
	entries     entriesView
	budget      client.RunBudget
	budgetStale bool
}

func newOpenRun(id string, s term.Style) *openRun {
	r := &openRun{id: id, style: s, followed: true, stale: true, budgetStale: true}
	r.timeline.SpansMax, r.timeline.Tree().AgentsMax = spansMax, agentsMax
	return r
}

func (r *openRun) tree() *term.Tree { return r.timeline.Tree() }

// highlight selects the agent on screen.
func (r *openRun) highlight(agent string) {
	if agent != r.agent {
		r.agent, r.transcript = agent, transcript{stale: true}
	}
}

// selectedAgent returns the agent on screen; the first one, if none was selected.
func (r *openRun) selectedAgent() string {
	if r.agent == "" {
		if ids := r.tree().Agents(); len(ids) > 0 {
			return ids[0]
		}
	}
	return r.agent
}

// addEvents adds the next events of the run.
func (r *openRun) addEvents(events []client.Event) {
	for _, e := range events {
		r.timeline.AddEvent(e)
		r.transcript.addEvent(e, r.agent)
		if e.Seq == 0 && (e.Kind == event.KindMessageDelta || e.Kind == event.KindMessageReasoning) {
			continue // pieces of a message that comes whole
		}
		r.events.add(e, r.style)
		r.entries.stale = true
		r.budgetStale = r.budgetStale || strings.HasPrefix(e.Kind, "budget.") || e.Kind == event.KindRunFinished
		r.stale = r.stale || e.Kind == event.KindRunFinished || e.Kind == event.KindQueryAsked || e.Kind == event.KindQueryAnswered
	}
}

// applyFetched applies an answer about the run.
func (r *openRun) applyFetched(f Fetched) {
	switch e := f.Effect.(type) {
	case FetchRun:
		if info, ok := f.Data.(client.RunInfo); ok && e.Run == r.id {
			if r.info, r.known, r.stale = info, true, false; info.State == client.RunInterrupted {
				r.tree().MarkInterrupted()
			}
		}
	case FetchBudget:
		if info, ok := f.Data.(client.RunInfo); ok && e.Run == r.id {
			if b, err := info.Budget(); err == nil {
				r.budget, r.budgetStale = b, false
				slices.SortStableFunc(r.budget.Agents, func(a, b client.AgentInfo) int { return int(b.Used.Tokens - a.Used.Tokens) })
				r.budget.Agents = r.budget.Agents[:min(len(r.budget.Agents), budgetAgentsMax)]
			}
		}
	case FetchEntries:
		if p, ok := f.Data.(EntriesPage); ok && e.Run == r.id && e.Agent == r.entries.agent && e.After == r.entries.after() {
			r.entries.take(p)
		}
	case FetchTranscript:
		if raw, ok := f.Data.(json.RawMessage); ok && e.Run == r.id && e.Agent == r.agent {
			r.transcript.take(raw)
		}
	}
}

// isFinished reports whether the run has ended, as far as that is known.
func (r *openRun) isFinished() bool {
	return r.ended || r.tree().Result != nil || r.known && r.info.State == client.RunFinished
}

// state is the state of the run in one word, as the list of runs has it.
func (r *openRun) state() string {
	if result := r.tree().Result; result != nil {
		return term.FormatReason(result.Reason)
	}
	if !r.known {
		return "reading"
	}
	return stateOf(r.info)
}

// eventLog keeps the newest events of a run, each as one line.
type eventLog struct {
	kept    []eventLine
	dropped int
}

// eventLine is one event: how it is drawn, and what selects it.
type eventLine struct {
	agent, kind string
	text        string
}

func (l *eventLog) add(e client.Event, s term.Style) {
	if len(l.kept) >= eventsMax+eventsMax/4 {
		n := len(l.kept) - eventsMax
		l.kept, l.dropped = slices.Clone(l.kept[n:]), l.dropped+n
	}
	stamp := "--:--:--"
	if at, err := time.Parse(time.RFC3339, e.TS); err == nil {
		stamp = at.Local().Format(time.TimeOnly)
	}
	who := e.Agent
	if who == "super" {
		who = "run"
	}
	line := s.Dim(stamp) + " " + s.Cyan(term.Pad(cleanLine(who), agentColumns)) + " " + term.Pad(cleanLine(e.Kind), kindColumns) + " " +
		term.Truncate(term.EventDetail(e), eventColumnsMax)
	l.kept = append(l.kept, eventLine{strings.Clone(e.Agent), strings.Clone(e.Kind), strings.Clone(line)})
}

const (
	agentColumns = 12
	kindColumns  = 20
)

// lines returns the lines that a function selects, and the filter of the view.
func (l *eventLog) lines(m *Model, want func(eventLine) bool) (lines []string) {
	if l.dropped > 0 {
		lines = append(lines, m.style.Dim("older events are not shown: troupe events "+cleanLine(m.run.id)))
	}
	for _, e := range l.kept {
		if want(e) && m.matches(e.text) {
			lines = append(lines, e.text)
		}
	}
	if len(lines) == 0 {
		lines = []string{m.style.Dim("none yet")}
	}
	return lines
}

// isMessage reports whether an event is about what agents send each other.
func isMessage(e eventLine) bool {
	switch e.kind {
	case event.KindMessageAgent, event.KindAgentHandedOff, event.KindDelegationRequested, event.KindDelegationFinished, event.KindDelegationBackground, event.KindMessageUser:
		return true
	}
	return false
}
