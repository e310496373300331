package host

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/bus"
	"github.com/troupe-run/troupe/mailbox/jetstream"
)

// MachinePrefix begins the name of the pool of a machine: of all runs that have
// a directory there (PROTOCOL P20).
const MachinePrefix = "host-"

// size is how many shards and streams a pool is made with.
type size struct{ Shards, Streams int }

// sizeOf a pool. That of one machine has few nodes, and there may be many
// machines: it has one stream.
func sizeOf(pool string) size {
	if strings.HasPrefix(pool, MachinePrefix) {
		return size{Shards: 16, Streams: 1}
	}
	return size{Shards: jetstream.DefaultShards, Streams: jetstream.DefaultStreams}
}

// MachinePool is the name of the pool of a machine.
func MachinePool(machine string) string {
	name := MachinePrefix + strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		}
		return '-'
	}, strings.ToLower(cmp.Or(machine, "unnamed")))
	if len(name) > bus.TokenBytesMax { // what is cut off must still tell machines apart
		sum := sha256.Sum256([]byte(machine))
		name = name[:bus.TokenBytesMax-9] + "-" + hex.EncodeToString(sum[:4])
	}
	return name
}

// served are the pools of this node: the given ones or "default", and that of
// its machine where clients may name directories.
func (c Config) served() []string {
	list := slices.Clone(c.Pools)
	if len(list) == 0 {
		list = []string{bus.DefaultPool}
	}
	if len(c.Roots) > 0 {
		list = append(list, MachinePool(c.Machine))
	}
	slices.Sort(list)
	list = slices.Compact(list)
	if i := slices.Index(list, bus.DefaultPool); i > 0 { // it comes first
		list = slices.Insert(slices.Delete(list, i, i+1), 0, bus.DefaultPool)
	}
	return list
}
