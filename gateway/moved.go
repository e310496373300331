package gateway

import (
	"fmt"
	"strings"
	"time"

	"github.com/troupe-run/troupe/actors/life"
)

// ClusterRun stands for the run in events of nodes.
const ClusterRun = "_cluster"

// ShardMoved is the data of shard.taken and shard.released.
type ShardMoved struct {
	Pool  string `json:"pool"`
	Shard int    `json:"shard"`
	// Why is started, expired, rebalanced or drained.
	Why   string `json:"why"`
	Epoch uint64 `json:"epoch"`
	// Other is the node that had it before, or is to have it.
	Other string `json:"other,omitempty"`
}

// Moved makes the event of a shard that a node took or released.
func Moved(node, name string, taken bool, m ShardMoved, at time.Time) life.Event {
	kind := "shard.released"
	if taken {
		kind = "shard.taken"
	}
	id := strings.ToLower(node)
	return life.Event{V: 1, ID: fmt.Sprintf("%s.%s#%s.%d.%d.%s", ClusterRun, id, m.Pool, m.Shard, m.Epoch, kind), TS: life.Stamp(at.UnixMilli()),
		Run: ClusterRun, Agent: id, Node: name, Kind: kind, Data: m}
}

// ShardUnreadable is the data of shard.unreadable and shard.readable.
type ShardUnreadable struct {
	Pool  string `json:"pool"`
	Shard int    `json:"shard"`
	// Why is what reading it failed of.
	Why string `json:"why,omitempty"`
}

// Unreadable makes the event of a shard that a node holds and cannot read, or can read
// again.
func Unreadable(node, name string, is bool, u ShardUnreadable, at time.Time) life.Event {
	kind := "shard.readable"
	if is {
		kind = "shard.unreadable"
	}
	id := strings.ToLower(node)
	return life.Event{V: 1, ID: fmt.Sprintf("%s.%s#%s.%d.%d.%s", ClusterRun, id, u.Pool, u.Shard, at.UnixMilli(), kind), TS: life.Stamp(at.UnixMilli()),
		Run: ClusterRun, Agent: id, Node: name, Kind: kind, Data: u}
}
