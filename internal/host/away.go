package host

import (
	"context"
	"fmt"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/bus"
	"github.com/troupe-run/troupe/gateway"
	"github.com/troupe-run/troupe/internal/shard"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// PoolPatienceDefault is how long a pool may be without a node until its agents
// are given up: longer than a machine takes to start again.
const PoolPatienceDefault = 10 * time.Minute

const poolLooks = 10 // looks within the patience

// watchPools gives up the agents of pools that nobody serves any more. A
// directory is only on its machine, so nobody else could go on (PROTOCOL P20).
func (h *Host) watchPools() {
	tick := time.NewTicker(max(h.cfg.PoolPatience/poolLooks, time.Millisecond))
	defer tick.Stop()
	away := map[string]time.Time{}
	told := map[mailbox.Address]bool{}
	for {
		select {
		case <-h.life.Done():
			return
		case <-tick.C:
		}
		if err := h.lookAtPools(away, told); err != nil && h.life.Err() == nil {
			h.cfg.Logger.Warn("it is not known which pools have a node; it is looked again", "error", err)
		}
	}
}

func (h *Host) lookAtPools(away map[string]time.Time, told map[mailbox.Address]bool) error {
	ctx, cancel := context.WithTimeout(h.life, openTimeout)
	defer cancel()
	pools, err := h.post.Pools(ctx)
	if err != nil {
		return err
	}
	served, known := servedPools(h.holding.keeper.Load().Nodes(), h.holding.keeper.Load().ID())
	if !known {
		clear(away) // who was away while this node saw nobody, it cannot say
		return nil
	}
	for _, pool := range pools {
		since, known := away[pool]
		switch {
		case served[pool]:
			delete(away, pool)
		case !known:
			away[pool] = time.Now()
		case time.Since(since) >= h.cfg.PoolPatience:
			now, err := h.holding.keeper.Load().ReadNodes(ctx)
			if err != nil {
				return err
			}
			if served, _ := servedPools(now, ""); served[pool] { // the view was behind
				delete(away, pool)
				continue
			}
			if err := h.giveUpPool(ctx, pool, told); err != nil {
				return err
			}
		}
	}
	return nil
}

// servedPools are the pools that live nodes serve; not known if a node does not see
// itself: then it does not see the others either.
func servedPools(nodes []shard.Seen, self string) (served map[string]bool, known bool) {
	served = map[string]bool{bus.DefaultPool: true} // supervisors are there: without them nobody decides
	for _, n := range nodes {
		known = known || n.ID == self
		for _, pool := range n.Pools {
			served[pool] = true
		}
	}
	return served, known
}

// giveUpPool tells the supervisors that this node holds of their agents in a pool.
func (h *Host) giveUpPool(ctx context.Context, pool string, told map[mailbox.Address]bool) error {
	shards, err := h.post.Pool(ctx, pool)
	if err != nil {
		return err
	}
	all := make([]int, shards)
	for s := range all {
		all[s] = s
	}
	logs, err := h.post.AddressesIn(ctx, pool, all...)
	if err != nil {
		return err
	}
	list, err := h.runs.List(ctx)
	if err != nil {
		return err
	}
	open := map[string]bool{}
	for _, i := range list {
		open[i.RunID] = i.State != gateway.Finished
	}
	for _, at := range logs {
		super := mailbox.At(at.Run(), mailbox.Super)
		slot, ours := h.holding.pools.slot(super)
		if _, ok := h.holding.keeper.Load().Holds(slot); !ours || !ok || !open[at.Run()] || told[at] {
			continue
		}
		f := supervisor.GivenUp{Agent: agent.ID(at.Agent()), Why: fmt.Sprintf("no node of pool %s was there for %s", pool, h.cfg.PoolPatience)}
		if err := h.node.Command(ctx, super, "away-"+at.Agent(), f.Kind(), f); err != nil {
			return err
		}
		told[at] = true
		h.cfg.Logger.Warn("an agent is given up: nobody serves its pool", "actor", at, "pool", pool)
	}
	return nil
}
