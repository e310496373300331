package shard

import (
	"maps"
	"time"
)

// planner decides which shards this node takes and gives away next. Only the goroutine
// of Keeper.run uses it.
type planner struct {
	cfg    *Config
	state  *keeperState
	vacant map[int]time.Time // by slot: since when no node has held the shard
	better map[int]time.Time // by slot: since when another node has been the best one for a shard that is held
}

func newPlanner(cfg *Config, s *keeperState) *planner {
	return &planner{cfg: cfg, state: s, vacant: map[int]time.Time{}, better: map[int]time.Time{}}
}

// nextPlan plans for all pools. At most one shard is on its way to another node, unless
// this node leaves.
func (p *planner) nextPlan() ShardPlan {
	p.state.Lock()
	now := time.Now()
	views := p.poolViews(now)
	// A node that does not see its own key is calm even before it learns that the key has
	// ended: perhaps the server heard no node at all.
	_, known := p.state.view.nodes[p.cfg.Node.ID]
	calm := !known || p.state.session.isCalm(now)
	leaves, former := p.state.isLeaving(), maps.Clone(p.state.holdings.former)
	moving := len(p.state.holdings.outgoing) > 0
	p.state.Unlock()
	var all ShardPlan
	first := 0 // slot of the pool
	for _, v := range views {
		next := PlanShards(v)
		if leaves {
			next = planDrain(v)
		} else if moving || calm || len(all.Give) > 0 {
			next.Give = nil
		}
		for _, s := range next.Take {
			if _, had := former[first+s]; had || !calm {
				all.Take = append(all.Take, first+s)
			}
		}
		for _, s := range next.Give {
			all.Give = append(all.Give, first+s)
		}
		first += v.Shards
	}
	return all
}

// poolViews returns this node's view of each pool. The caller holds the lock of the state.
func (p *planner) poolViews(now time.Time) []PoolView {
	views := make([]PoolView, len(p.cfg.Pools))
	first := 0
	for i, pool := range p.cfg.Pools {
		start := first
		v := PoolView{
			Self: p.cfg.Node.ID, Pool: pool.Name, Shards: pool.Shards,
			Nodes: p.state.view.takersOf(pool.Name), Avoid: map[int][]string{},
			Holders: map[int]string{}, Free: map[int]time.Duration{}, Patience: p.cfg.TTL / renewParts,
			Busy:      func(s int) bool { return p.cfg.IsBusy(start + s) },
			Elsewhere: map[int]time.Duration{}, StableFor: p.cfg.StableFor,
		}
		for id, n := range p.state.view.nodes {
			for _, s := range n.Avoids[pool.Name] {
				v.Avoid[s] = append(v.Avoid[s], id)
			}
		}
		for s := range pool.Shards {
			p.addShard(&v, s, first+s, now)
		}
		first += pool.Shards
		views[i] = v
	}
	return views
}

// addShard adds the state of one shard to the view of its pool. The caller holds the lock
// of the state.
func (p *planner) addShard(v *PoolView, shard, slot int, now time.Time) {
	holder, held := p.state.view.holderOf(p.cfg.slots[slot])
	if held && holder == v.Self {
		held = false // the holdings know better
	}
	if _, ours := p.state.holdings.held[slot]; ours {
		holder, held = v.Self, true
	}
	if !held {
		delete(p.better, slot)
		v.Free[shard] = since(p.vacant, slot, now)
		return
	}
	delete(p.vacant, slot)
	v.Holders[shard] = holder
	if best := BestNode(v.Pool, shard, v.eligibleNodes(shard)); holder != v.Self || best == v.Self || best == "" {
		delete(p.better, slot)
		return
	}
	v.Elsewhere[shard] = since(p.better, slot, now)
}

// since returns for how long a slot has been in a map, and adds it if it is not there.
func since(times map[int]time.Time, slot int, now time.Time) time.Duration {
	if _, ok := times[slot]; !ok {
		times[slot] = now
	}
	return now.Sub(times[slot])
}
