package node

import (
	"slices"

	"github.com/troupe-run/troupe/internal/bus/names"
)

// servedPools returns the pools of this node: the given ones or "default", and that of its
// machine if clients may name directories.
func (c Config) servedPools() []string {
	list := slices.Clone(c.Pools)
	if len(list) == 0 {
		list = []string{names.DefaultPool}
	}
	if len(c.Roots) > 0 {
		list = append(list, names.MachinePool(c.Machine))
	}
	slices.Sort(list)
	list = slices.Compact(list)
	if i := slices.Index(list, names.DefaultPool); i > 0 { // it comes first
		list = slices.Insert(slices.Delete(list, i, i+1), 0, names.DefaultPool)
	}
	return list
}
