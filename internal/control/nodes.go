package control

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/names"
)

// Cluster describes the nodes that share the logs.
type Cluster struct {
	// Nodes lists the live nodes, as this node has last seen them.
	Nodes func() []client.NodeInfo
	// ReadNodes reads the live nodes from the server: what this node has seen may be older than what the client has read
	// from another node.
	ReadNodes func(ctx context.Context) ([]client.NodeInfo, error)
	// TTL is how long a lease lasts after it was renewed.
	TTL time.Duration
	// Ask asks the nodes of a name to leave, or to stay.
	Ask func(ctx context.Context, name string, leave bool) error
	// HoldJob reports whether this node does a job that one node of the cluster does at a time. Default: it does none.
	HoldJob func(ctx context.Context, name string) (bool, error)
}

// NodesRequest has no fields.
type NodesRequest struct{}

func (c *viewer) listNodes(context.Context, NodesRequest) (any, error) {
	if c.cfg.Cluster == nil {
		var self client.NodeInfo
		if c.cfg.Self != nil {
			self = c.cfg.Self()
		}
		self.ID, self.Name, self.State, self.Shards = c.cfg.Name, c.cfg.Name, "alone", []int{}
		return []client.NodeInfo{self}, nil
	}
	return c.cfg.Cluster.Nodes(), nil
}

func (c *viewer) drainNodes(ctx context.Context, r client.DrainRequest) (any, error) {
	if err := names.CheckNodeID(r.Node); err != nil { // the name becomes a key, also of a node that is gone
		return nil, &client.Error{Code: client.CodeBad, Text: "node: " + err.Error(), Hint: "`troupe nodes list` shows the nodes"}
	}
	if c.cfg.Cluster == nil {
		return nil, &client.Error{Code: client.CodeConflict, Text: "this node owns its logs alone, so no other node can take them over",
			Hint: "stop it; the next process that opens its state directory continues"}
	}
	all, err := c.cfg.Cluster.ReadNodes(ctx)
	if err != nil {
		return nil, err
	}
	var named []client.NodeInfo
	for _, n := range all {
		if n.Name == r.Node || n.ID == r.Node {
			r.Node = n.Name
			named = append(named, n)
		}
	}
	if len(named) == 0 && !r.Undo { // a node that is gone may be allowed to join again
		return nil, &client.Error{Code: client.CodeNotFound, Text: fmt.Sprintf("there is no node %q", r.Node), Hint: "`troupe nodes list` shows the nodes"}
	}
	if !r.Undo {
		warnUnservedPools(named, all)
	}
	return named, c.cfg.Cluster.Ask(ctx, r.Node, !r.Undo)
}

// warnUnservedPools warns, for each node that is asked to leave, about a pool that no other node serves.
func warnUnservedPools(named, all []client.NodeInfo) {
	stays := map[string]bool{}
	for _, n := range all {
		if n.State == "leaving" || slices.ContainsFunc(named, func(m client.NodeInfo) bool { return m.ID == n.ID }) {
			continue
		}
		for pool := range n.Pools {
			stays[pool] = true
		}
	}
	for i, n := range named {
		for _, pool := range slices.Sorted(maps.Keys(n.Pools)) {
			if !stays[pool] {
				named[i].Warning = fmt.Sprintf("no other node serves pool %s: it keeps those shards until another node does, or until it is stopped", pool)
				break
			}
		}
	}
}
