package schedules

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/control/workgroup"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/internal/schedule"
)

const (
	// retryMin and retryMax are the pauses after a look that failed.
	retryMin = 100 * time.Millisecond
	retryMax = 10 * time.Second
	// lookMax is the longest time between two looks at the clock: a machine that slept is late by no more.
	lookMax = 15 * time.Second
	// lookTimeout bounds one look at a schedule.
	lookTimeout = 30 * time.Second
	// stepsMax bounds what one look does.
	stepsMax = 50
)

// Scheduler begins the runs of the schedules that this node looks after: each has one goroutine, which reads the log of
// the schedule and carries out what is due.
type Scheduler struct {
	cfg  Config
	logs *logs
	work *workgroup.Group

	mu   sync.Mutex
	open map[string]chan struct{} // wakes the goroutine of a schedule
}

// NewScheduler returns a scheduler whose goroutines are in work.
func NewScheduler(cfg Config, work *workgroup.Group) *Scheduler {
	return &Scheduler{cfg: cfg, logs: &logs{cfg.Store}, work: work}
}

// WatchSchedule begins the runs of a schedule from now on. If it does already, it reads the log again at once, which
// has a new entry. It does not block.
func (c *Scheduler) WatchSchedule(id string) {
	if !c.cfg.Keeps {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	wake, there := c.open[id]
	if there {
		select {
		case wake <- struct{}{}:
		default: // a signal waits already
		}
		return
	}
	if c.open == nil {
		c.open = map[string]chan struct{}{}
	}
	wake = make(chan struct{}, 1)
	c.open[id] = wake
	c.work.Start(func() { c.advanceSchedule(id, wake) })
}

// endVisit forgets a schedule, unless it was called for again.
func (c *Scheduler) endVisit(id string, wake chan struct{}) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-wake:
		return false
	default:
		delete(c.open, id)
		return true
	}
}

// advanceSchedule carries out what the log of a schedule says next, until nothing is due any more or this node has lost
// the log.
func (c *Scheduler) advanceSchedule(id string, wake chan struct{}) {
	for pause := retryMin; ; {
		if c.cfg.HoldsLog != nil && !c.cfg.HoldsLog(schedule.LogOf(id)) { // the node that holds it looks after it
			if c.endVisit(id, wake) {
				return
			}
			continue
		}
		wait, more, err := c.LookAtSchedule(id)
		switch {
		case err != nil && c.work.Ctx.Err() == nil:
			if !bus.IsUnavailable(err) && !errors.Is(err, context.DeadlineExceeded) && !bus.IsFull(err) {
				c.cfg.Logger.Warn("cannot advance schedule; retrying", "schedule", id, "error", err)
			}
			wait, pause = pause, min(2*pause, retryMax)
		case !more:
			if c.endVisit(id, wake) {
				return
			}
			continue
		default:
			pause = retryMin
		}
		select {
		case <-time.After(min(wait, lookMax)):
		case <-wake:
		case <-c.work.Ctx.Done():
			return
		}
	}
}

// LookAtSchedule performs the due steps of a schedule. wait is when it must be looked at again; more is false if
// nothing is due any more. Several nodes may do it at once.
func (c *Scheduler) LookAtSchedule(id string) (wait time.Duration, more bool, err error) {
	ctx, cancel := context.WithTimeout(c.work.Ctx, lookTimeout)
	defer cancel()
	for range stepsMax {
		s, err := c.logs.read(ctx, id)
		if err != nil {
			return 0, true, err
		}
		if err := c.condenseSchedule(ctx, id, s); err != nil {
			return 0, true, err
		}
		act, err := s.Next(id, c.cfg.Now().UnixMilli(), func(run string) (bool, error) { return c.cfg.IsAtWork(ctx, run) })
		if err != nil {
			return 0, true, err
		}
		switch act := act.(type) {
		case schedule.Append:
			wait, err = c.decideDue(ctx, id, act.Fact)
			if err != nil || wait > 0 {
				return wait, true, err
			}
		case schedule.Open:
			if err := c.openDue(ctx, id, s, act); err != nil {
				return 0, true, err
			}
		case schedule.Wait:
			return max(time.UnixMilli(act.UntilMS).Sub(c.cfg.Now()), time.Millisecond), true, nil
		case schedule.Listen:
			wait, err := c.takeMessage(ctx, id, s)
			return wait, true, err
		case schedule.Stop:
			return 0, false, c.cleanUpDeleted(ctx, id, s)
		}
	}
	return retryMin, true, nil
}

// cleanUpDeleted removes what a deleted schedule has left. It is harmless to repeat.
func (c *Scheduler) cleanUpDeleted(ctx context.Context, id string, s *schedule.State) error {
	if s.Exists() || s.Deleted == 0 {
		return nil
	}
	if err := c.cfg.Triggers.Close(ctx, id); err != nil {
		return err
	}
	return c.logs.purge(ctx, id, s.Deleted)
}

// decideDue appends a decision. wait is how much too early it was by the clock of the log.
func (c *Scheduler) decideDue(ctx context.Context, id string, f schedule.Due) (wait time.Duration, err error) {
	s, err := c.logs.append(ctx, id, f)
	if err != nil {
		return 0, err
	}
	if early := s.EarlyMS(f); early > 0 {
		return time.Duration(early) * time.Millisecond, nil
	}
	if f.Why != "" && s.LastMS == f.DueMS {
		c.publishMissed(id, f.DueMS, event.ScheduleMissed{Why: f.Why, Missed: f.Missed + 1})
	}
	return 0, nil
}

// openDue opens the run of a due time, and appends that it did. Two nodes that do the same open one run.
func (c *Scheduler) openDue(ctx context.Context, id string, s *schedule.State, act schedule.Open) error {
	refused, err := c.openScheduled(ctx, s, act.Run, "")
	if err != nil {
		return err
	}
	if refused != nil {
		_, err = c.logs.append(ctx, id, schedule.NewRefused(act.DueMS, "", refused.Text))
		c.publishMissed(id, act.DueMS, event.ScheduleMissed{Why: schedule.WhyRefused, Missed: 1, Detail: refused.Text})
	} else {
		_, err = c.logs.append(ctx, id, schedule.Fired{DueMS: act.DueMS, Run: act.Run})
		c.publishFired(id, event.ScheduleFired{RunID: act.Run, Due: formatMS(act.DueMS), Missed: act.Missed})
	}
	return err
}

// condenseSchedule keeps the log of a schedule short.
func (c *Scheduler) condenseSchedule(ctx context.Context, id string, s *schedule.State) error {
	f, long := s.Condense()
	if !long {
		return nil
	}
	s, err := c.logs.append(ctx, id, f)
	if err != nil {
		return err
	}
	return c.logs.purge(ctx, id, s.Condensed)
}

// openScheduled opens a run of a schedule, with a text below its prompt. refused says why it can never be
// opened; err is for what may go by.
func (c *Scheduler) openScheduled(ctx context.Context, s *schedule.State, run, text string) (refused *client.Error, err error) {
	r := scheduledRequest(s)
	if r == nil {
		return &client.Error{Code: client.CodeBad, Text: "the request of the schedule does not decode"}, nil
	}
	r.RunID, r.Prompt, r.Outside, r.Owner = run, r.Prompt+text, r.Outside || text != "", s.Owner
	_, err = c.work.CallRecovered(ctx, "schedule", func(ctx context.Context, _ []byte) (any, error) {
		return nil, c.cfg.OpenRun(ctx, *r)
	}, nil)
	if err == nil || refuse.IsGone(err) { // it was opened before, and deleted since
		return nil, nil
	}
	known := c.cfg.NewRefusal(err)
	if known.Code >= client.CodeInternal || known.Code == client.CodeLimit {
		return nil, err
	}
	return known, nil
}

func (c *Scheduler) publishFired(id string, f event.ScheduleFired) {
	f.Schedule = id
	c.cfg.Publish(event.KindScheduleFired, id+"."+f.RunID, f)
}

// publishMissed publishes that a due time has begun no run.
func (c *Scheduler) publishMissed(id string, due int64, f event.ScheduleMissed) {
	c.publishMissedAs(fmt.Sprintf("%s.%d", id, due), id, due, f)
}

// publishMissedMessage publishes that a message has not begun its run. The id of the run names the event: several messages
// may come in one millisecond.
func (c *Scheduler) publishMissedMessage(id, run string, at int64, f event.ScheduleMissed) {
	c.publishMissedAs(id+"."+run, id, at, f)
}

func (c *Scheduler) publishMissedAs(name, id string, due int64, f event.ScheduleMissed) {
	f.Schedule, f.Due = id, formatMS(due)
	c.cfg.Publish(event.KindScheduleMissed, name, f)
}
