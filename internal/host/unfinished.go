package host

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/troupe-run/troupe/actors/life"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/gateway"
	"github.com/troupe-run/troupe/mailbox"
)

// Unfinished lists the runs that have not ended. The index is written after
// the log, so a run whose opener died in between is found by its log.
func (h *Host) Unfinished(ctx context.Context) ([]client.RunInfo, error) {
	logs, list, err := h.everything(ctx)
	if err != nil {
		return nil, err
	}
	open, _, err := h.unfinished(ctx, list, logs)
	return open, err
}

// everything lists the logs that there are, and the index.
func (h *Host) everything(ctx context.Context) (logs []mailbox.Address, list []client.RunInfo, err error) {
	list, err = h.runs.List(ctx)
	if err == nil {
		logs, err = h.post.Addresses(ctx, "")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("host: %w", err)
	}
	return logs, list, nil
}

// unfinished lists the runs that have not ended, by the index and by some logs; of
// those found are the ones that only their logs knew of.
func (h *Host) unfinished(ctx context.Context, list []client.RunInfo, logs []mailbox.Address) (open []client.RunInfo, found int, err error) {
	known := map[string]bool{}
	for _, i := range list {
		known[i.RunID] = true
		if i.State != gateway.Finished {
			open = append(open, i)
		}
	}
	for _, at := range logs {
		if at.Agent() != mailbox.Super || known[at.Run()] {
			continue
		}
		if buried, err := gateway.Buried(ctx, h.post, at.Run()); err != nil {
			return nil, found, err
		} else if buried {
			continue // it was deleted
		}
		row, err := h.runs.Add(ctx, client.RunInfo{RunID: at.Run(), State: gateway.Live, Node: h.cfg.Name})
		switch {
		case err != nil:
			return nil, found, err
		case row.State == gateway.Finished:
			continue // it ended after the list was read
		}
		open = append(open, row)
		found++
	}
	return open, found, nil
}

// takeUp wakes the actors of all runs that have not ended, but for those who wait:
// what the newest entry of a log says of its actor is enough to leave it at rest
// (PROTOCOL P17, P19). It is one pass over the newest entries: one for each run
// would cost a request to each stream. A supervisor that has ended, and whose run
// the index does not know as over, says so again.
func (h *Host) takeUp(ctx context.Context) error {
	open, err := h.Unfinished(ctx)
	if err != nil {
		return err
	}
	pass := h.newRequeue(true)
	defer pass.settle(ctx, true)
	if err := h.post.Heads(ctx, h.wakes(open, pass)); err != nil {
		return fmt.Errorf("host: %w", err)
	}
	return nil
}

// wakes wakes or queues those of the open runs who do not wait, one at each call.
func (h *Host) wakes(open []client.RunInfo, pass *requeue) func(mailbox.Head) error {
	live := map[string]bool{}
	for _, i := range open {
		live[i.RunID] = true
	}
	return func(d mailbox.Head) error {
		switch st := life.Stands(d.To, d.Data, d.Entries); {
		case !live[d.To.Run()], st.Ended && d.To.Agent() != mailbox.Super:
		case st.Rests:
			h.node.Asleep(d.To, st.Due)
		default:
			pass.look(d.Message)
		}
		return nil
	}
}

// roll is the index, read once for all who ask for it before it is begun: a node
// gains shards of many streams at once, and each asks.
type roll struct {
	turn sync.Mutex // it is read by one at a time
	mu   sync.Mutex
	next *page // not begun yet
}

type page struct {
	once sync.Once
	list []client.RunInfo
	err  error
}

// read gives what list says, which was asked after the caller came.
func (r *roll) read(ctx context.Context, list func(context.Context) ([]client.RunInfo, error)) ([]client.RunInfo, error) {
	r.mu.Lock()
	if r.next == nil {
		r.next = &page{}
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

// attempts are bounded: one log that nobody leads must not keep those from
// being read that were gained meanwhile. What takes longer because it is much gets
// twice the time at each attempt.
type attempts struct {
	first, most, now time.Duration
}

func (p *attempts) try(ctx context.Context, do func(context.Context) error) error {
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
