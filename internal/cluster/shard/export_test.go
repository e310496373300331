package shard

// Doubt makes a keeper doubt the lease of a shard.
func (k *Keeper) Doubt(slot int) {
	k.state.Lock()
	defer k.state.Unlock()
	k.state.holdings.doubt[slot] = struct{}{}
}
