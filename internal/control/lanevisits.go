package control

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/control/workgroup"
	"github.com/troupe-run/troupe/internal/refuse"
)

const (
	laneRetryMin = 100 * time.Millisecond
	laneRetryMax = 10 * time.Second
	laneTimeout  = 30 * time.Second
)

// laneVisits advances the lanes of conversations in the background, each by one goroutine.
type laneVisits struct {
	cfg    *Config
	work   *workgroup.Group
	keeper *laneKeeper

	mu   sync.Mutex
	open map[string]*laneVisit // by conversation
}

// laneVisit is one conversation that is visited.
type laneVisit struct {
	joins []string // runs that may not be in the lane yet
	more  bool     // it was called for since the visit began
	wake  chan struct{}
}

// call records that a conversation must be visited, and reports whether the caller must begin the visits.
func (v *laneVisits) call(conversation, run string) (visit *laneVisit, first bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	visit, there := v.open[conversation]
	if !there {
		if v.open == nil {
			v.open = map[string]*laneVisit{}
		}
		visit = &laneVisit{wake: make(chan struct{}, 1)}
		v.open[conversation] = visit
	}
	if visit.more = true; run != "" {
		visit.joins = append(visit.joins, run)
	}
	select {
	case visit.wake <- struct{}{}:
	default: // a signal waits already
	}
	return visit, !there
}

// begin takes what a visit must do; ok is false if nothing is left, which ends the visits.
func (v *laneVisits) begin(conversation string, visit *laneVisit) (joins []string, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !visit.more {
		delete(v.open, conversation)
		return nil, false
	}
	joins, visit.joins, visit.more = visit.joins, nil, false
	return joins, true
}

// retry puts back what a visit has not done.
func (v *laneVisits) retry(visit *laneVisit, joins []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	visit.joins, visit.more = append(visit.joins, joins...), true
}

// LaneKnown visits the lane of a conversation in the background, and retries while the logs cannot be read. run is a
// run that waits in the lane and may not have joined it; "": none.
func (v *laneVisits) LaneKnown(conversation, run string) {
	if v.cfg.NoActors {
		return
	}
	visit, first := v.call(conversation, run)
	if first {
		v.work.Start(func() { v.visitLane(conversation, visit) })
	}
}

func (v *laneVisits) visitLane(conversation string, visit *laneVisit) {
	for pause := laneRetryMin; ; {
		joins, ok := v.begin(conversation, visit)
		if !ok {
			return
		}
		wait, err := v.advanceOnce(conversation, joins)
		switch {
		case err == nil && wait == 0:
			pause = laneRetryMin
			continue
		case err == nil:
			pause, joins = laneRetryMin, nil
		case !bus.IsUnavailable(err) && !errors.Is(err, context.DeadlineExceeded) && !bus.IsFull(err):
			v.cfg.Logger.Warn("a conversation does not advance; retrying", "conversation", conversation, "error", err)
			fallthrough
		default:
			wait, pause = pause, min(2*pause, laneRetryMax)
		}
		v.retry(visit, joins)
		select {
		case <-time.After(wait):
		case <-visit.wake:
		case <-v.work.Ctx.Done():
			return
		}
	}
}

func (v *laneVisits) advanceOnce(conversation string, joins []string) (again time.Duration, err error) {
	ctx, cancel := context.WithTimeout(v.work.Ctx, laneTimeout)
	defer cancel()
	for _, run := range joins {
		if err := v.keeper.joinLane(ctx, conversation, run); err != nil && !refuse.HasCode(err, client.CodeForbidden) { // a run of another owner has ended
			return 0, err
		}
	}
	return v.keeper.advanceLane(ctx, conversation)
}
