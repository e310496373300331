package cluster

import (
	"cmp"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cluster/shard"
)

// DescribeLeases lists the leases of all shards and how long one lasts; nothing if this node owns all logs.
func DescribeLeases(o *Owner) (list []client.LeaseInfo, ttl time.Duration) {
	k := o.keeper.Load()
	if k == nil {
		return nil, 0
	}
	for _, l := range k.Leases() {
		list = append(list, client.LeaseInfo{Pool: l.Pool, Shard: l.N, Node: l.Node, Epoch: l.Epoch, Lapsed: !l.Valid})
	}
	return list, cmp.Or(o.cfg.LeaseTTL, shard.TTLDefault)
}
