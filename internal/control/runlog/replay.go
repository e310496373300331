// Package runlog reads the logs of runs, conversations and schedules for requests: what a replay of a log says, whether
// a run was deleted, and why one is not there. It appends only to logs that belong to no actor. It refuses a log of a
// newer release, because this one cannot know what its entries mean.
package runlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// Replay reads a log from its first entry into a machine. each, if there is one, is called
// after every entry; ErrEnough from it ends the replay without an error. An entry of a newer
// form ends it with an error: this program cannot know its effect, so it reports nothing
// about the log and appends nothing to it.
func Replay(ctx context.Context, post mailbox.Store, at mailbox.Address, m activation.Machine, each func(mailbox.Message) error) (*activation.LogReader, error) {
	l := activation.Watch(at, m)
	err := post.Read(ctx, at, 0, 0, func(e mailbox.Message) error {
		if r := l.Next(e); errors.Is(r.Err, mailbox.ErrForm) {
			return refuse.NewerLog(at)
		}
		if each == nil {
			return nil
		}
		return each(e)
	})
	if err != nil && !errors.Is(err, ErrEnough) {
		return nil, fmt.Errorf("control: read %s: %w", at, err)
	}
	return l, nil
}

// ReplaySupervisor returns what the log of a run's supervisor says.
func ReplaySupervisor(ctx context.Context, post mailbox.Store, run string) (supervisor.State, error) {
	r, err := ReplaySupervisorLog(ctx, post, run)
	return r.State, err
}

// SupervisorReplay is what a replay of a supervisor's log has found.
type SupervisorReplay struct {
	State    supervisor.State
	Damage   string // of the log, if there is any
	Place    uint64 // of the last entry
	Requests int    // of clients
}

// ReplaySupervisorLog replays the log of a run's supervisor.
func ReplaySupervisorLog(ctx context.Context, post mailbox.Store, run string) (r SupervisorReplay, err error) {
	at := mailbox.At(run, mailbox.Super)
	m := &activation.Supervisor{Addr: at}
	l, err := Replay(ctx, post, at, m, func(e mailbox.Message) error {
		r.Place = e.Place
		return nil
	})
	if err != nil {
		return SupervisorReplay{}, err
	}
	r.State, r.Damage, r.Requests = m.State, l.Damage, l.Requests()
	return r, nil
}

// ReplayAgent returns what the log of an agent says.
func ReplayAgent(ctx context.Context, post mailbox.Store, at mailbox.Address) (agent.State, error) {
	m := &activation.Agent{Addr: at}
	if _, err := Replay(ctx, post, at, m, nil); err != nil {
		return agent.State{}, err
	}
	return m.State, nil
}

// ErrEnough ends a read that has found its result.
var ErrEnough = errors.New("control: enough was read")
