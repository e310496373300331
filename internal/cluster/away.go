package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/cluster/shard"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// PoolPatienceDefault is how long a pool may be without a node until its agents
// are given up: longer than a machine takes to start again.
const PoolPatienceDefault = 10 * time.Minute

const poolChecks = 10 // checks within the patience

// poolWatch gives up agents of pools without a node.
type poolWatch struct{ *Owner }

// run gives up the agents of pools that no node serves any more. A directory exists only on
// its own machine, so no other node could continue those agents (PROTOCOL P20).
func (o poolWatch) run() {
	tick := time.NewTicker(max(o.cfg.PoolPatience/poolChecks, time.Millisecond))
	defer tick.Stop()
	away := map[string]time.Time{}
	told := map[mailbox.Address]bool{}
	for {
		select {
		case <-o.cfg.Life.Done():
			return
		case <-tick.C:
		}
		if err := o.checkPools(away, told); err != nil && o.cfg.Life.Err() == nil {
			o.cfg.Logger.Warn("cannot list live nodes; retrying", "error", err)
		}
	}
}

func (o poolWatch) checkPools(away map[string]time.Time, told map[mailbox.Address]bool) error {
	ctx, cancel := context.WithTimeout(o.cfg.Life, openTimeout)
	defer cancel()
	pools, err := o.cfg.Streams.Pools(ctx)
	if err != nil {
		return err
	}
	served, known := servedPools(o.keeper.Load().Nodes(), o.keeper.Load().ID())
	if !known {
		clear(away) // while this node sees no nodes, it cannot tell which pools are unserved
		return nil
	}
	for _, pool := range pools {
		since, known := away[pool]
		switch {
		case served[pool]:
			delete(away, pool)
		case !known:
			away[pool] = time.Now()
		case time.Since(since) >= o.cfg.PoolPatience:
			now, err := o.keeper.Load().ReadNodes(ctx)
			if err != nil {
				return err
			}
			if served, _ := servedPools(now, ""); served[pool] { // the view was behind
				delete(away, pool)
				continue
			}
			if err := o.giveUpPool(ctx, pool, told); err != nil {
				return err
			}
		}
	}
	return nil
}

// servedPools returns the pools that live nodes serve; known is false if this node does not
// see itself, because it then does not see the others either.
func servedPools(nodes []shard.SeenNode, self string) (served map[string]bool, known bool) {
	served = map[string]bool{names.DefaultPool: true} // supervisors run there; without them nothing is decided
	for _, n := range nodes {
		known = known || n.ID == self
		for _, pool := range n.Pools {
			served[pool] = true
		}
	}
	return served, known
}

// awayRequest begins the name of the request that gives an agent up. It has a dot, which no request id of a client has.
const awayRequest = "away."

// giveUpPool reports the lost agents of a pool to the supervisors that this node holds.
func (o poolWatch) giveUpPool(ctx context.Context, pool string, told map[mailbox.Address]bool) error {
	shards, err := o.cfg.Streams.Pool(ctx, pool)
	if err != nil {
		return err
	}
	all := make([]int, shards)
	for s := range all {
		all[s] = s
	}
	logs, err := o.cfg.Streams.AddressesIn(ctx, pool, all...)
	if err != nil {
		return err
	}
	list, err := o.cfg.Runs.List(ctx)
	if err != nil {
		return err
	}
	open := map[string]bool{}
	for _, i := range list {
		open[i.RunID] = i.State != client.RunFinished
	}
	for _, at := range logs {
		super := mailbox.At(at.Run(), mailbox.Super)
		slot, ours := o.pools.slotOf(super)
		if _, ok := o.keeper.Load().Holds(slot); !ours || !ok || !open[at.Run()] || told[at] {
			continue
		}
		f := supervisor.GivenUp{Agent: spec.ID(at.Agent()), Why: fmt.Sprintf("no node of pool %s was there for %s", pool, o.cfg.PoolPatience)}
		if err := o.cfg.Node().Command(ctx, super, awayRequest+at.Agent(), f.Kind(), f); err != nil {
			return err
		}
		told[at] = true
		o.cfg.Logger.Warn("an agent is given up: no node serves its pool", "actor", at, "pool", pool)
	}
	return nil
}
