package control

import (
	"context"

	"github.com/troupe-run/troupe/client"
)

// ClusterRequest has no fields. It is a type of its own: owners may list the nodes, and not ask this.
type ClusterRequest struct{}

// describeCluster answers the verb cluster: the nodes, and what only a node itself knows of leases, streams and throttles.
func (c *viewer) describeCluster(ctx context.Context, _ ClusterRequest) (any, error) {
	info := client.ClusterInfo{}
	if c.cfg.Inspect != nil {
		var err error
		if info, err = c.cfg.Inspect(ctx); err != nil {
			return nil, err
		}
	}
	nodes, err := c.listNodes(ctx, NodesRequest{})
	if err != nil {
		return nil, err
	}
	info.Nodes = nodes.([]client.NodeInfo)
	countHeld(&info)
	for i := range info.Pools {
		info.Pools[i].Nodes = append([]string{}, info.Pools[i].Nodes...)
	}
	info.Pools, info.Leases = append([]client.PoolInfo{}, info.Pools...), append([]client.LeaseInfo{}, info.Leases...)
	info.Streams, info.Throttles = append([]client.StreamInfo{}, info.Streams...), append([]client.ThrottleInfo{}, info.Throttles...)
	return info, nil
}

// countHeld adds to each pool its nodes, and how many of its shards have a holder. A node that owns all logs is all pools.
func countHeld(info *client.ClusterInfo) {
	for i := range info.Pools {
		p := &info.Pools[i]
		for _, n := range info.Nodes {
			if shards, ok := n.Pools[p.Name]; ok || n.State == "alone" {
				p.Nodes, p.Held = append(p.Nodes, n.Name), p.Held+len(shards)
			}
			if n.State == "alone" {
				p.Held = p.Shards
			}
		}
	}
}
