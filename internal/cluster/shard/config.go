package shard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/names"
)

// Node is a live node as other nodes see it.
type Node struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Host    string `json:"host,omitempty"`
	PID     int    `json:"pid,omitempty"`
	Version string `json:"version,omitempty"`
	Started int64  `json:"started_ms"`
	// Form is the form of its records, Session the session that its leases name, and Beat
	// the number of its attempts to renew them.
	Form    int    `json:"form"`
	Session string `json:"session"`
	Beat    uint64 `json:"beat"`
	Leaving bool   `json:"leaving,omitempty"`
	// HTTP is the address at which the node serves its API and page; "": it serves none.
	HTTP string `json:"http,omitempty"`
	// Settings is the file, as HOST:FILE, from which the node reads the permission rules of new runs; "": none.
	Settings string `json:"settings,omitempty"`
	// Profile is the durability profile that this node found at its start, and Unproven
	// names the checks of it that could not be made.
	Profile  string `json:"profile,omitempty"`
	Unproven string `json:"unproven,omitempty"`
	// Avoids are shards, by pool, with newer logs: nodes that know them should hold them.
	Avoids map[string][]int `json:"avoids,omitempty"`
	// Unreadable are shards, by pool, that it holds and cannot read.
	Unreadable map[string][]int `json:"unreadable,omitempty"`
	// Pools are those whose shards it takes.
	Pools []string `json:"pools,omitempty"`
	// Live and Resting count the running actors of the node and the passivated ones in its
	// logs at its last renewal; Busy counts the work in progress of the running ones.
	Live    int64 `json:"live,omitempty"`
	Resting int64 `json:"resting,omitempty"`
	Busy    int64 `json:"busy,omitempty"`
}

// Serves reports whether the node takes shards of a pool.
func (n Node) Serves(pool string) bool {
	return slices.Contains(n.Pools, pool)
}

// addAvoided adds a shard that nodes of a newer release should hold.
func (n *Node) addAvoided(s Shard) (changed bool) {
	if slices.Contains(n.Avoids[s.Pool], s.N) {
		return false
	}
	avoids := maps.Clone(n.Avoids) // a renewal may read the old one
	if avoids == nil {
		avoids = map[string][]int{}
	}
	avoids[s.Pool] = append(slices.Clip(avoids[s.Pool]), s.N)
	n.Avoids = avoids
	return true
}

// setUnreadable adds a shard to the unreadable ones, or removes it.
func (n *Node) setUnreadable(s Shard, is bool) (changed bool) {
	if slices.Contains(n.Unreadable[s.Pool], s.N) == is {
		return false
	}
	all := maps.Clone(n.Unreadable) // a renewal may read the old one
	if all == nil {
		all = map[string][]int{}
	}
	all[s.Pool] = slices.DeleteFunc(slices.Clone(all[s.Pool]), func(n int) bool { return n == s.N })
	if is {
		all[s.Pool] = append(all[s.Pool], s.N)
	}
	if len(all[s.Pool]) == 0 {
		delete(all, s.Pool)
	}
	n.Unreadable = all
	return true
}

// SeenNode is a node as its last renewal showed it.
type SeenNode struct {
	Node
	Heard time.Time // by the clock of the server
	Came  time.Time // when this node received it, by its own clock
	Holds []Shard
}

// Pool is a set of shards that a node takes part in.
type Pool struct {
	Name   string
	Shards int
}

// Shard is one shard of a pool.
type Shard struct {
	Pool string `json:"pool"`
	N    int    `json:"shard"`
}

// String returns "pool.shard", which is the key of its lease.
func (s Shard) String() string { return s.Pool + "." + strconv.Itoa(s.N) }

// lease is the value of a lease.
type lease struct {
	Form    int    `json:"form"`
	Node    string `json:"node"`
	Session string `json:"session"`
}

// Form is the newest form of leases and of the keys of nodes that this program knows.
const Form = 2

// TTLs of leases. The default is longer than a NATS cluster takes to elect another
// leader (4 to 9 s, by the documentation of the server): with a shorter one every
// failover looks like the death of all nodes.
const (
	TTLDefault     = 20 * time.Second
	TTLMin         = 2 * time.Second
	renewParts     = 4 // renewals within one TTL
	requestsAtOnce = 8 // requests at once
	stableParts    = 3
	calmParts      = 2 // TTLs in which a node that lost its session takes no other node's former shards: those nodes need about one to return
)

// Config configures a Keeper. JS, Buckets, Pools, Busy, Quiet and Changed are required. A
// shard is named by its slot: the shards of the first pool come first.
type Config struct {
	JS      jetstream.JetStream
	Buckets *bus.Buckets
	Names   names.Names
	Node    Node // Start sets its ID and Pools
	Pools   []Pool
	TTL     time.Duration // whole seconds; default TTLDefault
	// StableFor is how long another node must have been the best one for a busy shard
	// before the shard moves. Default stableParts times TTL.
	StableFor time.Duration
	// SetLoad sets the counts of actors in the node's record at each renewal. Default: none.
	SetLoad func(*Node)
	// ShardMoved receives each shard that this node, by its id, took or released, and why. It
	// must not block.
	ShardMoved func(node string, m ShardMove)
	// IsBusy reports whether work is in progress in a shard that this node holds.
	IsBusy func(shard int) bool
	// DrainShard drains a shard before this node gives it away: no work may begin in it under this
	// epoch, and work in progress ends. Then it calls done, once, from any goroutine.
	DrainShard func(shard int, epoch uint64, done func())
	// ShardsChanged receives the shards that were gained or lost. A shard is gained also when its
	// lease was over or in doubt for a moment and no other node took it. One goroutine
	// calls ShardsChanged; it should not take longer than a renewal.
	ShardsChanged func(gained, lost []int)
	Logger        *slog.Logger // default: discard

	slots []Shard // of all pools; a slot is an index into it
}

// Limits of a TTL, as a multiple of the time that one write to the leases takes on the
// servers: a node renews four times in a TTL, and may have to send a renewal again.
const (
	ttlWritesMin   = 10 // below it the node warns
	ttlWritesLeast = 4  // below it the node does not start
	// TTLReplicated is the shortest TTL on replicated servers without a warning: their
	// elections take 4 to 9 s.
	TTLReplicated = 15 * time.Second
	ttlMeasures   = 3 // writes that are measured if the first one was slow
)

// ErrTTL means that the TTL cannot hold on this server.
var ErrTTL = errors.New("shard: the TTL of leases is too short")

// ErrConfig means that a required field of a Config is missing or wrong.
var ErrConfig = errors.New("shard: config")

// checkAndFill checks the configuration, sets the defaults, and lists the shards of all pools.
func (c *Config) checkAndFill() error {
	if c.JS == nil || c.Buckets == nil || len(c.Pools) == 0 || c.IsBusy == nil || c.DrainShard == nil || c.ShardsChanged == nil {
		return fmt.Errorf("%w: JS, Buckets, Pools, Busy, Quiet and Changed are required", ErrConfig)
	}
	c.TTL = cmp.Or(c.TTL, TTLDefault)
	if c.TTL < TTLMin || c.TTL%time.Second != 0 {
		return fmt.Errorf("%w: %w: %s; it is whole seconds, at least %s", ErrConfig, ErrTTL, c.TTL, TTLMin)
	}
	c.StableFor = cmp.Or(c.StableFor, stableParts*c.TTL)
	if c.SetLoad == nil {
		c.SetLoad = func(*Node) {}
	}
	if c.ShardMoved == nil {
		c.ShardMoved = func(string, ShardMove) {}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Node.Pools, c.slots = nil, nil
	for _, p := range c.Pools {
		if err := names.CheckToken(p.Name); err != nil || p.Shards < 1 || slices.Contains(c.Node.Pools, p.Name) {
			return fmt.Errorf("%w: pool %q of %d shards: %w", ErrConfig, p.Name, p.Shards, err)
		}
		c.Node.Pools = append(c.Node.Pools, p.Name)
		for n := range p.Shards {
			c.slots = append(c.slots, Shard{p.Name, n})
		}
	}
	return nil
}

// slotOf returns the number of a shard among those of all pools; ok is false for a shard
// that the node does not serve.
func (c *Config) slotOf(s Shard) (slot int, ok bool) {
	for _, p := range c.Pools {
		if p.Name == s.Pool {
			return slot + s.N, s.N >= 0 && s.N < p.Shards
		}
		slot += p.Shards
	}
	return 0, false
}

// shardNames returns the names of slots.
func (c *Config) shardNames(slots []int) []string {
	list := make([]string, len(slots))
	for i, s := range slots {
		list[i] = c.slots[s].String()
	}
	return list
}

// roundTimeout bounds a round of requests: a server that does not answer must not keep the
// Keeper from the next round.
func (c *Config) roundTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.TTL/renewParts)
}
