package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-run/troupe"
	"github.com/troupe-run/troupe/actors"
)

// Figures of growth.
const (
	nodeStart    figure = "node start ms"
	listRuns     figure = "list ms"
	heapPerRun   figure = "heap B/run"
	listsOfRuns         = 5 // the median of them counts
	settleFor           = 15 * time.Second
	settleEvery         = time.Second
	settleWithin        = 0.002
)

// errGrowth: a node does not list the runs that it has run.
var errGrowth = errors.New("bench: the node lists no run")

// measureFinished runs agents to their end, closes the node, and measures how long the next node
// on the same directory takes to start and to list the runs.
func measureFinished(ctx context.Context, c column, s setup) (sample, error) {
	s.store = storeSynced // a directory that outlives the node
	filled, err := c.open(ctx, s)
	if err != nil {
		return nil, err
	}
	err = runMany(ctx, s.agents, filled.run)
	if err := errors.Join(err, filled.close()); err != nil {
		return nil, err
	}
	began := time.Now()
	r, err := c.open(ctx, s)
	if err != nil {
		return nil, err
	}
	started := time.Since(began)
	listed, err := timeList(ctx, r.(*entry).node)
	if err := errors.Join(err, r.close()); err != nil {
		return nil, err
	}
	return sample{nodeStart: millis(started), listRuns: millis(listed)}, nil
}

// runMany runs agents, startsAtOnce at the same time.
func runMany(ctx context.Context, agents int, run func(context.Context) error) error {
	var left atomic.Int64
	left.Store(int64(agents))
	var all sync.WaitGroup
	failures := make(chan error, startsAtOnce)
	for range startsAtOnce {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				if err := run(ctx); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	all.Wait()
	select {
	case err := <-failures:
		return err
	default:
		return nil
	}
}

// timeList returns the median time of a list. A list holds the newest runs that fit a reply.
func timeList(ctx context.Context, n *troupe.Node) (time.Duration, error) {
	var took []time.Duration
	for range listsOfRuns {
		began := time.Now()
		list, err := n.Client().List(ctx)
		if err != nil {
			return 0, err
		}
		took = append(took, time.Since(began))
		if len(list) == 0 {
			return 0, errGrowth
		}
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }

// measureParked parks runs twice, and reads by how much the second half grows the heap: the first
// pays for what the server keeps once.
func measureParked(ctx context.Context, c column, s setup, p *profiler) (sample, error) {
	r, err := c.open(ctx, s)
	if err != nil {
		return nil, err
	}
	before, err := parkMany(ctx, r, s.agents)
	if err != nil {
		return nil, err
	}
	after, err := parkMany(ctx, r, s.agents)
	if err := errors.Join(err, p.heap(), r.close()); err != nil {
		return nil, err
	}
	return sample{heapPerRun: float64(after-before) / float64(s.agents)}, nil
}

// parkMany runs agents until they wait for a person, and returns the heap after the node has
// passivated their actors.
func parkMany(ctx context.Context, r runner, agents int) (heap int64, err error) {
	if err := runMany(ctx, agents, func(ctx context.Context) error { return parkOne(ctx, r) }); err != nil {
		return 0, err
	}
	select {
	case <-time.After(actors.IdleTimeoutDefault):
		return readSettledHeap(ctx)
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// parkOne runs one agent until it waits for a person.
func parkOne(ctx context.Context, r runner) error {
	if err := r.run(ctx); !errors.Is(err, troupe.ErrParked) {
		return errors.Join(errors.New("bench: a run that asks a person is not parked"), err)
	}
	return nil
}

// readSettledHeap reads the heap once it has not become smaller for a while.
func readSettledHeap(ctx context.Context) (int64, error) {
	least, since := int64(1)<<62, time.Now()
	tick := time.NewTicker(settleEvery)
	defer tick.Stop()
	for time.Since(since) < settleFor {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
		now, err := readMemory()
		if err != nil {
			return 0, err
		}
		if now.heap < least-int64(float64(least)*settleWithin) {
			least, since = now.heap, time.Now()
		}
	}
	return least, nil
}
