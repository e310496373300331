package gateway

import (
	"context"
	"fmt"

	"github.com/troupe-run/troupe/client"
)

// Cluster is what the doors know of the nodes that share the logs.
type Cluster struct {
	// Nodes lists the live nodes.
	Nodes func() []client.NodeInfo
	// Ask asks the nodes of a name to leave, or to stay.
	Ask func(ctx context.Context, name string, leave bool) error
}

// NodesRequest has no fields.
type NodesRequest struct{}

func (c *Control) nodes(context.Context, NodesRequest) (any, error) {
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

func (c *Control) drain(ctx context.Context, r client.DrainRequest) (any, error) {
	if c.cfg.Cluster == nil {
		return nil, &client.Error{Code: client.CodeConflict, Text: "this node has the logs alone, so nobody could take over what it gives",
			Hint: "stop it; the next process that opens its state directory goes on"}
	}
	var named []client.NodeInfo
	for _, n := range c.cfg.Cluster.Nodes() {
		if n.Name == r.Node || n.ID == r.Node {
			r.Node = n.Name
			named = append(named, n)
		}
	}
	if len(named) == 0 && !r.Undo { // one that is not there may be let in again
		return nil, &client.Error{Code: client.CodeNotFound, Text: fmt.Sprintf("there is no node %q", r.Node), Hint: "`troupe nodes list` shows the nodes"}
	}
	return named, c.cfg.Cluster.Ask(ctx, r.Node, !r.Undo)
}
