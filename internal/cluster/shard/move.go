package shard

// ShardMove records that this node has taken or released a shard, and why.
type ShardMove struct {
	Shard
	Taken bool
	Why   MoveReason
	Epoch uint64
	// Other is the node that held it before, or is the best one for it now; "" if unknown.
	Other string
}

// MoveReason is the reason of a move.
type MoveReason string

// Reasons. A node that was asked to leave, or stops, drains; a node that stays gives a
// shard to a node that is better for it; a lease that was not renewed expires.
const (
	Fresh      MoveReason = "started" // no node held it, as far as this node knows
	Expired    MoveReason = "expired"
	Rebalanced MoveReason = "rebalanced"
	Drained    MoveReason = "drained"
)

// leaseEnd is how the last lease of a shard ended.
type leaseEnd struct {
	why MoveReason
	by  string
}
