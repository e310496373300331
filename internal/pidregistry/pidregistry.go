// Package pidregistry bounds what an actor system allocates for the ids of its actors.
package pidregistry

import cmap "github.com/orcaman/concurrent-map"

// ShareOneLockPerMap makes each actor system of this process allocate 1,024 maps instead of 32 times 1,024, which are
// 12 MiB and a tenth of the work of a short command. A main function calls it before its first node starts. A library
// must not: the number belongs to every user of the map library in the process, and a map that was filled before the
// call could no longer find its keys.
func ShareOneLockPerMap() { cmap.SHARD_COUNT = 1 }

// Keep is how many of an actor system's maps are worth keeping: 256 locks in all.
func Keep() int { return 256 / cmap.SHARD_COUNT }
