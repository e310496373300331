// Package replay feeds the recorded entries of every log of a run to the pure machines, in memory: without a model, a
// tool, a key, a network or a clock. It returns the end that this version reaches, and the first decision of this
// version that differs from the logs.
//
// The logs record these decisions: every message from one actor to another (in the log of its
// receiver), every result that an actor had asked the world for, and the end of each log.
// docs/replay.md lists what they do not record.
package replay

import (
	"errors"
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// Options of a replay.
type Options struct {
	Events bool   // collect the events that observers were sent
	Node   string // that the events name
	// Boundaries collects the decisions that the supervisor's policy was asked for.
	Boundaries bool
}

// Run is a run that was replayed.
type Run struct {
	Result event.Result
	Super  supervisor.State
	Agents map[spec.ID]agent.State
	Events []event.Published // with Options.Events
	// Boundaries are the decisions of the policy, with Options.Boundaries.
	Boundaries []RecordedBoundary

	Entries   int  // entries read
	Messages  int  // recorded messages that were compared with those that this version sends
	Answers   int  // own entries that were compared with what this version asks for
	Unchecked int  // messages whose sender's log was read before it held their cause
	Ended     bool // the run is over: its result is final
	Closed    bool // the supervisor's log has its last entry; a process may end before it writes that of a run that is over
	// ReadErr is the first entry that could not be read. Such an entry decides nothing.
	ReadErr error
	// Damage describes a log whose own hashes show that it is not whole, while no entry records that.
	Damage error
	// Difference is the first decision that differs; nil: this version decides the same.
	Difference *Difference

	superEntries uint64
	run          string // its id
}

// ErrNoLog says that there is nothing to replay.
var ErrNoLog = errors.New("replay: no log of a supervisor")

// Logs replays the logs of one run. The entries of each log must be in order; the logs may be mixed.
func Logs(entries []mailbox.Message, o Options) *Run {
	r := &replayer{options: o, logs: map[mailbox.Address]*replayedLog{}, run: &Run{Agents: map[spec.ID]agent.State{}}}
	for _, m := range entries {
		r.readEntry(m)
	}
	r.compareMessages()
	r.collectEnd()
	r.run.Difference = r.first(entries)
	return r.run
}

// Err reports why the replay did not come to the recorded end: damage, or a difference.
func (r *Run) Err() error {
	switch {
	case r.Damage != nil:
		return r.Damage
	case r.Difference != nil:
		return r.Difference
	case r.Super.Phase == "":
		return ErrNoLog
	}
	return nil
}

// replayer is a replay under way.
type replayer struct {
	options Options
	run     *Run
	logs    map[mailbox.Address]*replayedLog
	order   []*replayedLog // as the logs first occur
}

func (r *replayer) readEntry(m mailbox.Message) {
	l := r.logs[m.To]
	if l == nil {
		l = newReplayedLog(m.To, r.options.Events)
		l.watchBoundaries = r.options.Boundaries
		r.logs[m.To] = l
		r.order = append(r.order, l)
	}
	r.run.Entries++
	l.stamps = append(l.stamps, m.Stamp())
	l.noteRecorded(m)
	out := l.reader.Next(m)
	l.noteRepeats(out.Repeat)
	if out.Err != nil && r.run.ReadErr == nil {
		r.run.ReadErr = out.Err
	}
	if !r.options.Events {
		return
	}
	parent := ""
	if l.agent != nil {
		parent = string(l.agent.State.Task.Parent)
	}
	r.run.Events = append(r.run.Events, activation.EventsOf(m.To, parent, r.options.Node, out.N, l.reader.At, out.Events)...)
}

// collectEnd copies what the machines came to.
func (r *replayer) collectEnd() {
	damaged := r.isDamaged()
	for _, l := range r.order {
		r.run.Answers += l.answers
		if l.agent != nil {
			r.run.Agents[spec.ID(l.at.Agent())] = l.agent.State
		} else {
			r.run.Boundaries = l.boundaries
			r.run.Super, r.run.Result = l.super.State, l.super.State.Result()
			r.run.Ended, r.run.Closed = l.super.State.Phase == supervisor.Over, l.isClosed()
			r.run.superEntries, r.run.run = l.reader.N, l.at.Run()
		}
		switch {
		case r.run.Damage != nil || damaged:
		case l.reader.Damage != "":
			r.run.Damage = fmt.Errorf("replay: %s: %s", l.at, l.reader.Damage)
		case l.concludesDamage():
			r.run.Damage = fmt.Errorf("replay: %s: %s, and no entry records that", l.at, l.describeEnd())
		}
	}
}

// first returns the earliest difference of all logs, with the state before it.
func (r *replayer) first(entries []mailbox.Message) *Difference {
	var first *Difference
	for _, l := range r.order {
		for i := range l.differences {
			if d := &l.differences[i]; first == nil || d.stamp.Compare(first.stamp) < 0 {
				first = d
			}
		}
	}
	if first == nil {
		return nil
	}
	before := newReplayedLog(first.Log, false)
	for _, m := range entries {
		if m.To != first.Log {
			continue
		}
		if before.reader.N+1 >= first.Entry {
			break
		}
		before.reader.Next(m)
	}
	first.State = before.describeState()
	return first
}

// isDamaged reports whether the run records the damage of one of its logs. What such a log sent
// before and after its damage need not agree.
func (r *replayer) isDamaged() bool {
	return slices.ContainsFunc(r.order, func(l *replayedLog) bool { return l.damaged || l.reader.Deleted })
}
