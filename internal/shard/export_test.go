package shard

// Doubt makes a keeper doubt the lease of a shard.
func (k *Keeper) Doubt(slot int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.doubt[slot] = struct{}{}
}
