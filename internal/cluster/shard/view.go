package shard

import "github.com/nats-io/nats.go/jetstream"

// leaseRecord is a lease as reported by the watch.
type leaseRecord struct {
	lease
	revision uint64
}

// clusterView is the cluster as reported by the watches: all pools, including those that this node
// does not serve. It may be behind the leader.
type clusterView struct {
	leases map[Shard]leaseRecord
	nodes  map[string]SeenNode
	ends   map[Shard]leaseEnd // how the last lease of a shard ended

	seen       uint64 // revision of this node's own key
	seenBefore uint64 // seen, one tick ago
	missed     int    // ticks in which seen did not change although the key was written
}

func newView() clusterView {
	return clusterView{leases: map[Shard]leaseRecord{}, nodes: map[string]SeenNode{}, ends: map[Shard]leaseEnd{}}
}

// staleAfter is the number of ticks without this node's own key after which the watches
// are restarted.
const staleAfter = 4

// countTick counts a tick, and reports whether the watches differ from the contents of the buckets. It is called
// once in a tick, before this node's own key, at revision own, is written again.
func (v *clusterView) countTick(own uint64) bool {
	switch {
	case v.missed >= staleAfter:
	case v.seen == own, v.seen != v.seenBefore:
		v.missed = 0
	default:
		v.missed++
	}
	v.seenBefore = v.seen
	return v.missed >= staleAfter
}

// recordOwnKey records the revision of this node's own key. A lower one means that the bucket
// was created anew: the watch does not report deleted keys.
func (v *clusterView) recordOwnKey(revision uint64) {
	if revision < v.seen {
		v.missed = staleAfter
	}
	v.seen = revision
}

// holderOf names the node whose valid lease the view has.
func (v *clusterView) holderOf(s Shard) (id string, ok bool) {
	r, ok := v.leases[s]
	if !ok || r.Form > Form {
		return r.Node, ok // of a newer form: this program cannot judge it
	}
	return r.Node, v.nodes[r.Node].Session == r.Session && r.Session != ""
}

// holdsByNode lists the shards of each node.
func (v *clusterView) holdsByNode() map[string][]Shard {
	held := map[string][]Shard{}
	for s := range v.leases {
		if id, ok := v.holderOf(s); ok {
			held[id] = append(held[id], s)
		}
	}
	return held
}

// takersOf lists the nodes that take shards of a pool.
func (v *clusterView) takersOf(pool string) []string {
	var list []string
	for id, n := range v.nodes {
		if !n.Leaving && n.Serves(pool) {
			list = append(list, id)
		}
	}
	return list
}

// endSession records how the leases of a session ended: it was not renewed.
func (v *clusterView) endSession(of SeenNode) {
	for s, r := range v.leases {
		if r.Node == of.ID && r.Session == of.Session {
			v.ends[s] = leaseEnd{Expired, of.ID}
		}
	}
}

// removeLease records how a lease ended. A holder gives a lease back by deleting its key;
// the server purges expired keys.
func (v *clusterView) removeLease(s Shard, op jetstream.KeyValueOp) {
	before, known := v.leases[s]
	if !known {
		return
	}
	delete(v.leases, s)
	n, lives := v.nodes[before.Node]
	switch {
	case op != jetstream.KeyValueDelete:
		v.ends[s] = leaseEnd{Expired, before.Node}
	case !lives || n.Leaving:
		v.ends[s] = leaseEnd{Drained, before.Node}
	default:
		v.ends[s] = leaseEnd{Rebalanced, before.Node}
	}
}
