package runspec

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/internal/toolset"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// NodePools describes the node pools of a shared server.
type NodePools struct {
	// Exists reports whether a pool exists.
	Exists func(ctx context.Context, pool string) (bool, error)
	// Serving lists the live nodes that take shards of a pool.
	Serving func(pool string) []string
}

// agentPlacement is where the agents of a run live.
type agentPlacement struct {
	pool        string // of agents whose definitions name none
	definitions []supervisor.Definition
	warnings    []string
}

// placeAgents decides in which pools the agents of a run live. A node that owns all logs is all
// pools. On a shared server, a run with a directory lives in the pool of this machine, and
// agents that are placed elsewhere are not offered the tools of a directory. An agent that is not required is
// left out if its pool does not exist.
func (b *Builder) placeAgents(ctx context.Context, req acceptedRequest, t toolGrants, required map[string]bool) (p agentPlacement, err error) {
	p.definitions = slices.Clone(t.definitions)
	if b.cfg.Pools == nil {
		for i, d := range p.definitions {
			if d.NodePool != "" && d.NodePool != names.DefaultPool {
				p.warnings = append(p.warnings, fmt.Sprintf("agent %s asks for pool %s; a node with its own server ignores pools", d.Name, d.NodePool))
			}
			p.definitions[i].NodePool = ""
		}
		return p, nil
	}
	p.pool = b.cfg.poolOf(req.workspace)
	specs, err := b.cfg.Tools.DirectorySpecs(req.workspace)
	if err != nil {
		return p, err
	}
	memory, err := b.cfg.Tools.MemorySpecs()
	if err != nil {
		return p, err
	}
	specs = append(specs, memory...)
	reasons := map[string]string{names.DefaultPool: "every run"} // by pool, the reason why it is needed
	if p.pool != "" {
		reasons[p.pool] = "a run with a directory of this machine"
	}
	if p.definitions, p.warnings, err = b.cfg.Pools.withoutMissing(ctx, p.definitions, required); err != nil {
		return p, err
	}
	run := supervisor.Opened{NodePool: p.pool}
	for i, d := range p.definitions {
		if d.NodePool == "" {
			continue
		}
		reasons[d.NodePool] = cmp.Or(reasons[d.NodePool], d.Name)
		if run.PoolFor(d) != run.PoolFor(supervisor.Definition{}) && req.workspace != "" {
			p.definitions[i].Offer = offerWithout(d, t.tools, specs)
		}
	}
	for _, pool := range slices.Sorted(maps.Keys(reasons)) {
		if err := b.cfg.Pools.check(ctx, pool, reasons[pool]); err != nil {
			return p, err
		}
		if len(b.cfg.Pools.Serving(pool)) == 0 {
			p.warnings = append(p.warnings, fmt.Sprintf("pool %s has no live node: its agents wait", pool))
		}
	}
	return p, nil
}

// poolOf is the node pool of a run with a directory; "" is DefaultPool.
func (c Config) poolOf(dir string) string {
	if c.Pools == nil || dir == "" {
		return ""
	}
	return names.MachinePool(c.Machine)
}

// withoutMissing leaves out the agents that are not required and whose pools do not exist.
func (p *NodePools) withoutMissing(ctx context.Context, defs []supervisor.Definition, required map[string]bool) (kept []supervisor.Definition, warnings []string, err error) {
	for _, d := range defs {
		if d.NodePool == "" || required[d.Name] {
			kept = append(kept, d)
			continue
		}
		wrong, refused := p.check(ctx, d.NodePool, d.Name), (*client.Error)(nil)
		switch {
		case wrong == nil:
			kept = append(kept, d)
		case errors.As(wrong, &refused) && refused.Code == client.CodeBad:
			warnings = append(warnings, cmp.Or(d.Source, d.Name)+": left out: "+refused.Text)
		default:
			return nil, nil, wrong
		}
	}
	return kept, toolset.LimitNotes(warnings, teamNotesMax, "agents are left out, because their pools do not exist"), nil
}

// offerWithout returns the tools that an agent is offered, except some of them.
func offerWithout(d supervisor.Definition, all, but []model.ToolSpec) []string {
	offer := d.Offer
	if offer == nil {
		offer = toolset.ToolNames(all)
	}
	not := toolset.ToolNames(but)
	return slices.DeleteFunc(slices.Clone(offer), func(name string) bool { return slices.Contains(not, name) })
}

// check refuses a pool that does not exist: no node would ever serve it.
func (p *NodePools) check(ctx context.Context, pool, who string) error {
	if err := names.CheckToken(pool); err != nil {
		return refuse.Bad("change x-troupe.placement.pool", "agent %s asks for pool %q: %v", who, pool, err)
	}
	made, err := p.Exists(ctx, pool)
	if err == nil && !made {
		return refuse.Bad("start a node with `troupe-node --pools "+pool+"`, or change x-troupe.placement.pool", "pool %s does not exist (needed by %s)", pool, who)
	}
	return err
}
