package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/bus"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/mailbox/jetstream"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// size is how many shards and streams a pool is made with.
type size struct{ Shards, Streams int }

// sizeOf a pool. That of one machine has few nodes, and there may be many
// machines: it has one stream.
func sizeOf(pool string) size {
	if strings.HasPrefix(pool, bus.MachinePrefix) {
		return size{Shards: 16, Streams: 1}
	}
	return size{Shards: jetstream.DefaultShards, Streams: jetstream.DefaultStreams}
}

// served are the pools of this node: the given ones or "default", and that of
// its machine where clients may name directories.
func (c Config) served() []string {
	list := slices.Clone(c.Pools)
	if len(list) == 0 {
		list = []string{bus.DefaultPool}
	}
	if len(c.Roots) > 0 {
		list = append(list, bus.MachinePool(c.Machine))
	}
	slices.Sort(list)
	list = slices.Compact(list)
	if i := slices.Index(list, bus.DefaultPool); i > 0 { // it comes first
		list = slices.Insert(slices.Delete(list, i, i+1), 0, bus.DefaultPool)
	}
	return list
}

// place decides in which pools the agents of a run live. A node that has the
// logs alone is all pools. On a server that others share, a run with a directory
// lives in the pool of this machine, and agents that are placed elsewhere are
// not offered the tools of a directory.
func (h *Host) place(ctx context.Context, o *supervisor.Opened, a *client.RunAccepted) error {
	if h.holding.buckets == nil {
		for i, d := range o.Definitions {
			if d.Pool != "" && d.Pool != bus.DefaultPool {
				a.Notes = append(a.Notes, fmt.Sprintf("%s asks for pool %s: this node has the logs alone, so it runs here", d.Name, d.Pool))
			}
			o.Definitions[i].Pool = ""
		}
		return nil
	}
	if o.Workspace != "" {
		o.Pool = bus.MachinePool(h.cfg.Machine)
	}
	specs, err := h.specs(o.Workspace)
	if err != nil {
		return err
	}
	asked := map[string]string{bus.DefaultPool: "every run"}
	if o.Pool != "" {
		asked[o.Pool] = "a run with a directory of this machine"
	}
	for i, d := range o.Definitions {
		if d.Pool == "" {
			continue
		}
		asked[d.Pool] = cmp.Or(asked[d.Pool], d.Name)
		if o.Place(d) != o.Place(supervisor.Definition{}) && o.Workspace != "" {
			o.Definitions[i].Offer = without(d, o.Tools, specs)
		}
	}
	for _, pool := range slices.Sorted(maps.Keys(asked)) {
		if err := h.known(ctx, pool, asked[pool]); err != nil {
			return err
		}
		if len(h.serving(pool)) == 0 {
			a.Notes = append(a.Notes, fmt.Sprintf("no node of pool %s is there now: what is for it waits", pool))
		}
	}
	return nil
}

// without is what an agent is offered, but for some tools.
func without(d supervisor.Definition, all, but []model.ToolSpec) []string {
	offer := d.Offer
	if offer == nil {
		offer = specNames(all)
	}
	not := specNames(but)
	return slices.DeleteFunc(slices.Clone(offer), func(name string) bool { return slices.Contains(not, name) })
}

// known refuses a pool that nobody has made: nobody would ever answer there.
func (h *Host) known(ctx context.Context, pool, who string) error {
	if err := bus.Token(pool); err != nil {
		return bad("change x-troupe.placement.pool", "%s is placed in %q: %v", who, pool, err)
	}
	_, err := h.post.Pool(ctx, pool)
	if errors.Is(err, jetstream.ErrNoPool) {
		return bad("start a node with `troupe-node --pools "+pool+"`, or change x-troupe.placement.pool", "%s is placed in pool %s, which is not there", who, pool)
	}
	return err
}

// serving lists the nodes that live, stay, and take shards of a pool.
func (h *Host) serving(pool string) (ids []string) {
	k := h.holding.keeper.Load()
	if k == nil { // it is about to begin
		return nil
	}
	for _, n := range k.Nodes() {
		if n.Serves(pool) && !n.Leaving {
			ids = append(ids, n.ID)
		}
	}
	return ids
}
