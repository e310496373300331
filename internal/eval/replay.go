package eval

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// replayedRun is a run that was replayed from its logs by the pure machines alone: no model, no
// tool, no clock.
type replayedRun struct {
	result  event.Result
	state   supervisor.State
	agents  map[spec.ID]agent.State
	events  []event.Published
	readErr error // the first entry that could not be read
}

// replayLogs replays logs as they were written, with the addresses mixed.
func replayLogs(log []mailbox.Message) *replayedRun {
	f := &replayedRun{agents: map[spec.ID]agent.State{}}
	readers := map[mailbox.Address]*activation.LogReader{}
	agents := map[mailbox.Address]*activation.Agent{}
	super := &activation.Supervisor{Watch: true}
	for _, m := range log {
		l := readers[m.To]
		if l == nil {
			if m.To.Agent() == mailbox.Super {
				super.Addr = m.To
				l = activation.NewLogReader(m.To, "", mailbox.Epoch{}, super)
			} else {
				agents[m.To] = &activation.Agent{Addr: m.To, Watch: true}
				l = activation.NewLogReader(m.To, "", mailbox.Epoch{}, agents[m.To])
			}
			readers[m.To] = l
		}
		r := l.Next(m)
		if r.Err != nil && f.readErr == nil {
			f.readErr = r.Err
		}
		parent := ""
		if a := agents[m.To]; a != nil {
			parent = string(a.State.Task.Parent)
		}
		f.events = append(f.events, activation.EventsOf(m.To, parent, nodeName, r.N, l.At, r.Notes)...)
	}
	f.state, f.result = super.State, super.State.Result()
	for at, a := range agents {
		f.agents[spec.ID(at.Agent())] = a.State
	}
	return f
}

// compareReport reports how a replay differs from the run's own report: its result, the ends of its
// agents, and every event that it published.
func (f *replayedRun) compareReport(said *event.Result, told []event.Published) error {
	if f.readErr != nil {
		return f.readErr
	}
	if said != nil {
		if err := compareJSON("the result", *said, f.result); err != nil {
			return err
		}
	}
	for _, a := range f.result.Agents {
		if s, ok := f.agents[a.ID]; a.Phase == "done" && (!ok || s.Outcome.Reason != a.Reason) {
			return fmt.Errorf("%s ended as %s, its log ends as %s", a.ID, a.Reason, s.Outcome.Reason)
		}
	}
	again := map[string]event.Published{}
	for _, e := range f.events {
		again[e.ID] = e
	}
	for _, e := range told {
		if e.Seq == 0 {
			continue // a delta is in no log
		}
		if err := compareJSON("event "+e.ID, e, again[e.ID]); err != nil {
			return err
		}
	}
	return nil
}

func compareJSON(what string, was, is any) error {
	a, err := json.Marshal(was)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	b, err := json.Marshal(is)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if !bytes.Equal(a, b) {
		return fmt.Errorf("%s was %s and is %s", what, clipText(a), clipText(b))
	}
	return nil
}

const clipBytes = 300

func clipText(raw []byte) string {
	return clip.Marked(string(raw), clipBytes, "…")
}
