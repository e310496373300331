package node

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cluster"
	"github.com/troupe-run/troupe/internal/logstore/jetstream"
	"github.com/troupe-run/troupe/internal/routes"
	"github.com/troupe-run/troupe/internal/throttle"
)

// inspectCluster returns the function that describes the pools, leases, streams and throttles that this node sees.
func inspectCluster(n *Node) func(context.Context) (client.ClusterInfo, error) {
	return func(ctx context.Context) (info client.ClusterInfo, err error) {
		leases, ttl := cluster.DescribeLeases(n.logOwner)
		info.Leases, info.LeaseMS = leases, ttl.Milliseconds()
		if n.streams == nil {
			used, most, err := n.post.Room(ctx)
			info.Streams = []client.StreamInfo{{Name: "logs", Kind: "files", Bytes: used, BytesMax: most, Error: errorText(err)}}
		} else {
			info.Pools, info.Streams = describeStreams(ctx, n.streams)
		}
		info.Throttles, err = describeThrottles(ctx, n)
		return info, err
	}
}

// errorText is the text of an error, "" of none.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// describeStreams describes the pools of the server, and their streams. What cannot be asked has an error.
func describeStreams(ctx context.Context, post *jetstream.Post) (pools []client.PoolInfo, streams []client.StreamInfo) {
	list, err := jetstream.Inspect(ctx, post)
	if err != nil {
		streams = append(streams, client.StreamInfo{Name: "other pools", Kind: "jetstream", Error: errorText(err)})
	}
	for _, p := range list {
		pools = append(pools, client.PoolInfo{Name: p.Name, Shards: p.Shards, Streams: len(p.Streams)})
		for _, status := range p.Streams {
			s := status.Info
			if s == nil {
				streams = append(streams, client.StreamInfo{Name: status.Name, Kind: "jetstream", Pool: p.Name, Error: errorText(status.Err)})
				continue
			}
			i := client.StreamInfo{Name: s.Config.Name, Kind: "jetstream", Pool: p.Name, Messages: s.State.Msgs, Bytes: s.State.Bytes,
				BytesMax: uint64(max(s.Config.MaxBytes, 0)), Replicas: s.Config.Replicas}
			if c := s.Cluster; c != nil {
				i.Leader = c.Leader
				for _, r := range c.Replicas {
					if r.Offline || !r.Current {
						i.Behind = append(i.Behind, r.Name)
					}
				}
			}
			streams = append(streams, i)
		}
	}
	return pools, streams
}

// describeThrottles describes the throttles that hold state, those of the models that this node has used by their names.
func describeThrottles(ctx context.Context, n *Node) (list []client.ThrottleInfo, err error) {
	shown := make(chan map[string]throttle.Status, 1)
	n.actorNode.Throttles(func(all map[string]throttle.Status) { shown <- all })
	var all map[string]throttle.Status
	select {
	case all = <-shown:
	case <-ctx.Done():
		return nil, fmt.Errorf("node: throttles: %w", ctx.Err())
	}
	models := routes.ThrottledModels(n.routes)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s, of := all[name], models[name]
		list = append(list, client.ThrottleInfo{Name: name, Provider: of.Provider, Model: of.Model, ClosedMS: s.ClosedMS, Why: string(s.Why), Breaker: string(s.Breaker),
			Window: s.Window, InFlight: s.Flying, Waiting: s.Waiting, RequestsPerMinute: s.Requests, TokensPerMinute: s.Tokens})
	}
	slices.SortStableFunc(list, func(a, b client.ThrottleInfo) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Model, b.Model))
	})
	return list, nil
}
