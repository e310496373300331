package shard

// DoubtLease makes a keeper doubt the lease of a shard.
func (k *Keeper) DoubtLease(slot int) {
	k.state.Lock()
	defer k.state.Unlock()
	k.state.holdings.doubt[slot] = struct{}{}
}
