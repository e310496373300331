package shard

// Move records that this node has taken or released a shard, and why.
type Move struct {
	Shard
	Taken bool
	Why   Why
	Epoch uint64
	// Other is the node that held it before, or is the best one for it now; "" if unknown.
	Other string
}

// Why is the reason of a move.
type Why string

// Reasons. A node that was asked to leave, or stops, drains; a node that stays gives a
// shard to a node that is better for it; a lease that was not renewed expires.
const (
	Fresh      Why = "started" // no node held it, as far as this node knows
	Expired    Why = "expired"
	Rebalanced Why = "rebalanced"
	Drained    Why = "drained"
)

// leaseEnd is how the last lease of a shard ended.
type leaseEnd struct {
	why Why
	by  string
}
