package shard

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// plan takes and gives what the present view asks for.
func (k *Keeper) plan(ctx context.Context) {
	again, gone := k.dropLost(ctx)
	k.tell(again, gone)
	p := k.next()
	taking, cancel := k.soon(ctx)
	defer cancel()
	gained := each(p.Take, func(s int) bool { return k.take(taking, s) })
	k.taken(gained)
	for _, s := range p.Give {
		k.quieten(s)
	}
	lost := k.letAllGo(k.quiet(), k.why())
	k.tell(gained, lost)
	freeing, enough := k.soon(ctx)
	defer enough()
	k.freeAll(freeing, lost)
}

// why this node gives shards away now.
func (k *Keeper) why() Why {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.going || k.asked {
		return Drained
	}
	return Rebalanced
}

// letAllGo stops holding shards, and returns those that were held.
func (k *Keeper) letAllGo(slots []int, why Why) (lost []int) {
	epochs := map[int]uint64{}
	for _, s := range slots {
		if epoch, ok := k.letGo(s); ok {
			lost, epochs[s] = append(lost, s), epoch
		}
	}
	k.released(lost, epochs, why)
	return lost
}

// each calls do for shards, some at a time, and returns those that it is true for.
func each(shards []int, do func(shard int) bool) (list []int) {
	var wait sync.WaitGroup
	is := make([]bool, len(shards))
	turn := make(chan struct{}, renewersAt)
	for i, s := range shards {
		turn <- struct{}{}
		wait.Go(func() {
			defer func() { <-turn }()
			is[i] = do(s)
		})
	}
	wait.Wait()
	for i, s := range shards {
		if is[i] {
			list = append(list, s)
		}
	}
	return list
}

// quieten has a shard brought to rest, once.
func (k *Keeper) quieten(shard int) {
	k.mu.Lock()
	_, begun := k.giving[shard]
	h, ok := k.held[shard]
	if !begun && ok {
		k.giving[shard] = giving{epoch: h.epoch}
	}
	k.mu.Unlock()
	if begun || !ok {
		return
	}
	k.cfg.Quiet(shard, h.epoch, func() {
		k.mu.Lock()
		if k.giving[shard].epoch == h.epoch {
			k.giving[shard] = giving{h.epoch, true}
		}
		k.mu.Unlock()
		k.wake()
	})
}

// quiet are the shards that can be given now.
func (k *Keeper) quiet() []int {
	k.mu.Lock()
	defer k.mu.Unlock()
	var list []int
	for s, g := range k.giving {
		if g.quiet {
			list = append(list, s)
			delete(k.giving, s)
		}
	}
	slices.Sort(list)
	return list
}

func (k *Keeper) tell(gained, lost []int) {
	if len(gained)+len(lost) == 0 {
		return
	}
	k.cfg.Logger.Info("shards", "node", k.cfg.Node.ID, "gained", k.named(gained), "lost", k.named(lost))
	k.cfg.Changed(gained, lost)
}

func (k *Keeper) named(slots []int) []string {
	list := make([]string, len(slots))
	for i, s := range slots {
		list[i] = k.slots[s].String()
	}
	return list
}

// next plans for all pools. At most one shard is on its way to another node,
// unless this one leaves.
func (k *Keeper) next() Plan {
	k.mu.Lock()
	now := time.Now()
	views := k.views(now)
	// Also before anybody could tell that our own key has ended: nobody may have been heard.
	_, known := k.nodes[k.cfg.Node.ID]
	calm := !known || now.Before(k.calm) || !k.isLive()
	going, former := k.going || k.asked, maps.Clone(k.former)
	moving := len(k.giving) > 0
	k.mu.Unlock()
	var all Plan
	first := 0 // slot of the pool
	for _, v := range views {
		p := Next(v)
		if going {
			p = leaving(v)
		} else if moving || calm || len(all.Give) > 0 {
			p.Give = nil
		}
		for _, s := range p.Take {
			if _, ours := former[first+s]; ours || !calm {
				all.Take = append(all.Take, first+s)
			}
		}
		for _, s := range p.Give {
			all.Give = append(all.Give, first+s)
		}
		first += v.Shards
	}
	return all
}

// views are what is known of each pool. mu is held.
func (k *Keeper) views(now time.Time) []View {
	views := make([]View, len(k.cfg.Pools))
	first := 0
	for i, p := range k.cfg.Pools {
		v := View{Self: k.cfg.Node.ID, Pool: p.Name, Shards: p.Shards, Holders: map[int]string{}, Avoid: map[int][]string{}, Free: map[int]time.Duration{},
			Elsewhere: map[int]time.Duration{}, Patience: k.cfg.TTL / renewParts, Settle: k.cfg.Settle}
		start := first
		v.Busy = func(s int) bool { return k.cfg.Busy(start + s) }
		for id, n := range k.nodes {
			if !n.Leaving && n.Serves(p.Name) {
				v.Nodes = append(v.Nodes, id)
			}
			for _, s := range n.Avoids[p.Name] {
				v.Avoid[s] = append(v.Avoid[s], id)
			}
		}
		for s := range p.Shards {
			k.view(&v, s, first+s, now)
		}
		first += p.Shards
		views[i] = v
	}
	return views
}

// view adds what is known of one shard. mu is held.
func (k *Keeper) view(v *View, shard, slot int, now time.Time) {
	holder, held := k.holder(k.slots[slot])
	if held && holder == v.Self {
		held = false // the map of what is held knows better
	}
	if _, ours := k.held[slot]; ours {
		holder, held = v.Self, true
	}
	if !held {
		if _, ok := k.vacant[slot]; !ok {
			k.vacant[slot] = now
		}
		v.Free[shard] = now.Sub(k.vacant[slot])
		return
	}
	delete(k.vacant, slot)
	v.Holders[shard] = holder
	if best := Best(v.Pool, shard, v.takers(shard)); holder != v.Self || best == v.Self || best == "" {
		delete(k.better, slot)
		return
	}
	if _, ok := k.better[slot]; !ok {
		k.better[slot] = now
	}
	v.Elsewhere[shard] = now.Sub(k.better[slot])
}
