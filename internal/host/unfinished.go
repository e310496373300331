package host

import (
	"context"
	"fmt"
	"time"

	"github.com/troupe-run/troupe/actors/life"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/gateway"
	"github.com/troupe-run/troupe/mailbox"
)

// Unfinished lists the runs that have not ended. The index is written after
// the log, so a run whose opener died in between is found by its log.
func (h *Host) Unfinished(ctx context.Context) ([]client.RunInfo, error) {
	open, _, err := h.unfinished(ctx, nil)
	return open, err
}

// unfinished lists the runs that have not ended, and the logs of some slots;
// of all without any.
func (h *Host) unfinished(ctx context.Context, slots []int) (open []client.RunInfo, logs []mailbox.Address, err error) {
	list, err := h.runs.List(ctx)
	if err != nil {
		return nil, nil, err
	}
	known := map[string]bool{}
	for _, i := range list {
		known[i.RunID] = true
		if i.State != gateway.Finished {
			open = append(open, i)
		}
	}
	if len(slots) == 0 {
		logs, err = h.post.Addresses(ctx, "")
	}
	held := h.holding.pools
	if err == nil {
		err = held.each(slots, func(pool int, shards []int) error {
			some, err := h.post.AddressesIn(ctx, held[pool].Name, shards...)
			logs = append(logs, some...)
			return err
		})
	}
	if err != nil {
		return nil, nil, fmt.Errorf("host: %w", err)
	}
	for _, at := range logs {
		if at.Agent() != mailbox.Super || known[at.Run()] {
			continue
		}
		if buried, err := gateway.Buried(ctx, h.post, at.Run()); err != nil {
			return nil, nil, err
		} else if buried {
			continue // it was deleted
		}
		row := client.RunInfo{RunID: at.Run(), State: gateway.Live, Node: h.cfg.Name}
		if err := h.runs.Put(ctx, row); err != nil {
			return nil, nil, err
		}
		open = append(open, row)
	}
	return open, logs, nil
}

// takeUp wakes the actors of all runs that have not ended, but for those who wait:
// what the newest entry of a log says of its actor is enough to leave it at rest
// (PROTOCOL P17, P19). It is one pass over the newest entries: one for each run
// would cost a request to each stream. A supervisor that has ended, and whose run
// the index does not know as over, says so again. With slots, it is those whose logs are there.
func (h *Host) takeUp(ctx context.Context, slots []int) error {
	open, _, err := h.unfinished(ctx, slots)
	if err != nil {
		return err
	}
	live := map[string]bool{}
	for _, i := range open {
		live[i.RunID] = true
	}
	look := func(d mailbox.Head) error {
		switch st := life.Stands(d.To, d.Data, d.Entries); {
		case !live[d.To.Run()], st.Ended && d.To.Agent() != mailbox.Super:
		case st.Rests:
			h.node.Asleep(d.To, st.Due)
		default:
			h.node.Wake(d.To)
		}
		return nil
	}
	if len(slots) == 0 {
		err = h.post.Heads(ctx, look)
	} else {
		held := h.holding.pools
		err = held.each(slots, func(pool int, shards []int) error { return h.post.HeadsOf(ctx, held[pool].Name, shards, look) })
	}
	if err != nil {
		return fmt.Errorf("host: %w", err)
	}
	return nil
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
