package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/control/runlog"
	"github.com/troupe-run/troupe/mailbox"
)

// UnfinishedRuns lists the runs that have not ended. The index is written after the log, so a
// run whose opener died in between is found by its log.
func (o *Owner) UnfinishedRuns(ctx context.Context) ([]client.RunInfo, error) {
	t := unfinishedFinder{o}
	logs, list, err := t.readLogsAndIndex(ctx)
	if err != nil {
		return nil, err
	}
	open, _, err := t.findUnfinished(ctx, list, logs)
	return open, err
}

// readLogsAndIndex lists all logs and the index.
func (o unfinishedFinder) readLogsAndIndex(ctx context.Context) (logs []mailbox.Address, list []client.RunInfo, err error) {
	list, err = o.cfg.Runs.List(ctx)
	if err == nil {
		logs, err = o.cfg.Post.Addresses(ctx, "")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("cluster: %w", err)
	}
	return logs, list, nil
}

// findUnfinished lists the runs that have not ended, according to the index and to the given logs;
// found counts those that the index lacks.
func (o unfinishedFinder) findUnfinished(ctx context.Context, list []client.RunInfo, logs []mailbox.Address) (open []client.RunInfo, found int, err error) {
	known := map[string]bool{}
	for _, i := range list {
		known[i.RunID] = true
		if i.State != client.RunFinished {
			open = append(open, i)
		}
	}
	for _, at := range logs {
		if o.cfg.OtherLogFound != nil && mailbox.IsReserved(at.Run()) {
			o.cfg.OtherLogFound(at)
		}
		if at.Agent() != mailbox.Super || known[at.Run()] {
			continue
		}
		if may, err := runlog.MayContinue(ctx, o.cfg.Post, at.Run()); err != nil {
			return nil, found, err
		} else if !may {
			continue
		}
		row, err := o.cfg.Runs.Add(ctx, client.RunInfo{RunID: at.Run(), State: client.RunLive, Node: o.cfg.Name})
		switch {
		case err != nil:
			return nil, found, err
		case row.State == client.RunFinished:
			continue // it ended after the list was read
		}
		open = append(open, row)
		found++
	}
	return open, found, nil
}

// UnfinishedOf lists the runs that have not ended, according to an index that was read before and to
// the given logs.
func (o *Owner) UnfinishedOf(ctx context.Context, list []client.RunInfo, logs []mailbox.Address) ([]client.RunInfo, error) {
	open, _, err := unfinishedFinder{o}.findUnfinished(ctx, list, logs)
	return open, err
}

// newWaker returns a function that receives the newest entry of one log. It wakes or queues the
// log's actor if its run is open and the actor has not passivated.
func (o unfinishedFinder) newWaker(open []client.RunInfo, pass *requeuePass) func(mailbox.Head) error {
	live := map[string]bool{}
	for _, i := range open {
		live[i.RunID] = true
		if i.Conversation != "" && o.cfg.LaneFound != nil {
			o.cfg.LaneFound(i.Conversation) // its lane may wait for a node that died
		}
	}
	return func(d mailbox.Head) error {
		switch st := activation.ReadStanding(d.To, d.Data, d.Entries); {
		case !live[d.To.Run()], st.Ended && d.To.Agent() != mailbox.Super:
		case st.Rests:
			o.cfg.Node().NotePassivated(d.To, st.Due)
		default:
			pass.inspectLog(d.Message)
		}
		return nil
	}
}

// indexReader reads the index once for all callers that asked before that read began: a node gains
// shards of many streams at once, and each stream needs the index.
type indexReader struct {
	turn sync.Mutex // held while the index is read
	mu   sync.Mutex
	next *indexRead // not begun yet
}

type indexRead struct {
	once sync.Once
	list []client.RunInfo
	err  error
}

// readShared returns the result of a call of list that begins after this call of readShared. Callers
// that wait at the same time share one call.
func (r *indexReader) readShared(ctx context.Context, list func(context.Context) ([]client.RunInfo, error)) ([]client.RunInfo, error) {
	r.mu.Lock()
	if r.next == nil {
		r.next = &indexRead{}
	}
	p := r.next
	r.mu.Unlock()
	p.once.Do(func() {
		r.turn.Lock()
		defer r.turn.Unlock()
		r.mu.Lock()
		r.next = nil
		r.mu.Unlock()
		p.list, p.err = list(ctx)
	})
	return p.list, p.err
}

// takeUpMost is the longest that one attempt to take up runs may take.
const takeUpMost = 10 * time.Minute

// growingTimeout bounds each attempt: one log without a leader must not block the reading of
// shards that were gained meanwhile. An attempt that times out because there is much to
// read gets twice the time when it is retried.
type growingTimeout struct {
	first, most, now time.Duration
}

func (p *growingTimeout) runWithin(ctx context.Context, do func(context.Context) error) error {
	limit := max(p.first, p.now)
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := do(within)
	switch {
	case err == nil:
		p.now = 0
	case within.Err() != nil && ctx.Err() == nil:
		p.now = min(2*limit, p.most)
	}
	return err
}
