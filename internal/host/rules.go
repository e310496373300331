package host

import (
	"github.com/troupe-run/troupe/mailbox"
)

// rules are those that a new run gets: the newest that every live node knows, so
// that any of them may take it over (PROTOCOL P10).
func (h *Host) rules() int {
	least := h.cfg.Rules
	if k := h.holding.keeper.Load(); k != nil {
		for _, n := range k.Nodes() {
			least = min(least, max(n.Rules, 1)) // one that does not say is of the first release
		}
	}
	return least
}

// foreign has a shard go to a node that knows what this one met in it, if there
// is one. Its other logs are looked after here until then.
func (h *Host) foreign(at mailbox.Address, _ string) {
	k := h.holding.keeper.Load()
	if slot, ok := h.holding.pools.slot(at); ok && k != nil {
		k.Avoid(slot)
	}
}
