package cluster

import (
	"github.com/troupe-run/troupe/mailbox"
)

// CommonRules returns the rules version of a new run: the newest that every live node
// knows, so that any of them may take the run over (PROTOCOL P10).
func (o *Owner) CommonRules() int {
	least := o.cfg.Rules
	if k := o.keeper.Load(); k != nil {
		for _, n := range k.Nodes() {
			least = min(least, max(n.Rules, 1)) // a node without a version is of the first release
		}
	}
	return least
}

// PassNewerShard passes a shard to a node that knows the newer form that this one met in it, if
// there is one. Until then this node serves the other logs of the shard.
func (o *Owner) PassNewerShard(at mailbox.Address, _ string) {
	k := o.keeper.Load()
	if slot, ok := o.pools.slotOf(at); ok && k != nil {
		k.AvoidShard(slot)
	}
}
