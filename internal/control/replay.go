package control

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

// replay reads a log from its first entry into a machine. each, if there is one, is called
// after every entry; errEnough from it ends the replay without an error. An entry of a newer
// form ends it with an error: this program cannot know its effect, so it reports nothing
// about the log and appends nothing to it.
func replay(ctx context.Context, post mailbox.Store, at mailbox.Address, m activation.Machine, each func(mailbox.Message) error) (*activation.LogReader, error) {
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
	if err != nil && !errors.Is(err, errEnough) {
		return nil, fmt.Errorf("control: read %s: %w", at, err)
	}
	return l, nil
}

// ReplaySupervisor returns what the log of a run's supervisor says.
func ReplaySupervisor(ctx context.Context, post mailbox.Store, run string) (supervisor.State, error) {
	r, err := replaySupervisorLog(ctx, post, run)
	return r.state, err
}

// supervisorReplay is what a replay of a supervisor's log has found.
type supervisorReplay struct {
	state    supervisor.State
	damage   string // of the log, if there is any
	place    uint64 // of the last entry
	requests int    // of clients
}

func replaySupervisorLog(ctx context.Context, post mailbox.Store, run string) (r supervisorReplay, err error) {
	at := mailbox.At(run, mailbox.Super)
	m := &activation.Supervisor{Addr: at}
	l, err := replay(ctx, post, at, m, func(e mailbox.Message) error {
		r.place = e.Place
		return nil
	})
	if err != nil {
		return supervisorReplay{}, err
	}
	r.state, r.damage, r.requests = m.State, l.Damage, l.Requests()
	return r, nil
}

// ReplayAgent returns what the log of an agent says.
func ReplayAgent(ctx context.Context, post mailbox.Store, at mailbox.Address) (agent.State, error) {
	m := &activation.Agent{Addr: at}
	if _, err := replay(ctx, post, at, m, nil); err != nil {
		return agent.State{}, err
	}
	return m.State, nil
}
