package shard

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/bus"
)

// Node is a live node as others see it.
type Node struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Host    string `json:"host,omitempty"`
	PID     int    `json:"pid,omitempty"`
	Version string `json:"version,omitempty"`
	Started int64  `json:"started_ms"`
	// Form is that of its records, Session what its leases name, and Beat how often it
	// has tried to renew them.
	Form    int    `json:"form"`
	Session string `json:"session"`
	Beat    uint64 `json:"beat"`
	Leaving bool   `json:"leaving,omitempty"`
	// Profile is what the server promises as this node saw it when it started, and
	// Unproven which checks of it were not seen to hold.
	Profile  string `json:"profile,omitempty"`
	Unproven string `json:"unproven,omitempty"`
	// Rules are the newest that it knows, 0 of a node that does not say; Avoids are
	// shards, by pool, with logs that are newer: nodes that know them are to have them.
	Rules  int              `json:"rules,omitempty"`
	Avoids map[string][]int `json:"avoids,omitempty"`
	// Unreadable are shards, by pool, that it holds and cannot read.
	Unreadable map[string][]int `json:"unreadable,omitempty"`
	// Pools whose shards it takes; without any it is an old node that knows of one.
	Pools []string `json:"pools,omitempty"`
	// Live and Resting are how many actors it runs, and how many wait in logs that
	// it holds, when it last said that it lives; Busy is what those have under way.
	Live    int64 `json:"live,omitempty"`
	Resting int64 `json:"resting,omitempty"`
	Busy    int64 `json:"busy,omitempty"`
}

// Serves reports whether a node takes shards of a pool.
func (n Node) Serves(pool string) bool {
	return slices.Contains(n.Pools, pool) || len(n.Pools) == 0 && pool == bus.DefaultPool
}

// Seen is a node as it was last heard of.
type Seen struct {
	Node
	Heard time.Time // by the clock of the server
	Came  time.Time // when that came here, by the clock of this node
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

// String is "pool.shard", as the key of its lease.
func (s Shard) String() string { return s.Pool + "." + strconv.Itoa(s.N) }

// lease is the value of a lease.
type lease struct {
	Form    int    `json:"form"`
	Node    string `json:"node"`
	Session string `json:"session"`
}

// Form is the newest form of leases and of the keys of nodes that this program knows.
const Form = 2

// TTLs of leases. The default is longer than a NATS cluster takes to find
// another leader (4 to 9 s, reference of the server): a shorter one makes every
// failover look like the death of all nodes.
const (
	TTLDefault  = 20 * time.Second
	TTLMin      = 2 * time.Second
	renewParts  = 4 // a lease is renewed so often within its TTL
	renewersAt  = 8 // renewals at once
	settleParts = 3
	calmParts   = 2 // for so many TTLs a node that was not heard leaves to others what they had: they need about one to be back
)

// Config of a Keeper. JS, Buckets, Pools, Busy, Quiet and Changed are required. A shard
// is named by its slot: those of the first pool come first.
type Config struct {
	JS      jetstream.JetStream
	Buckets *bus.Buckets
	Names   bus.Names
	Node    Node // its ID and Pools are made by Start
	Pools   []Pool
	TTL     time.Duration // whole seconds; default TTLDefault
	// Settle is for how long another node must have been the best one for a shard
	// until it moves though it is busy. Default settleParts times TTL.
	Settle time.Duration
	// Load fills in what the node tells of its actors at each renewal. Default: nothing.
	Load func(*Node)
	// Moved is told of each shard that this node, by its id, took or released, and
	// why. It must not block.
	Moved func(node string, m Move)
	// Busy reports whether something is under way in a shard that this node holds.
	Busy func(shard int) bool
	// Quiet brings what is under way in a shard that is to be given to an end, lets
	// nothing new begin in it under this epoch, and calls done, once, from any goroutine.
	Quiet func(shard int, epoch uint64, done func())
	// Changed tells that shards were gained or lost. A shard is gained also when
	// its lease was over or in doubt for a moment, and nobody else had it. It is called from
	// one goroutine and should not take longer than a renewal.
	Changed func(gained, lost []int)
	Logger  *slog.Logger // default: discard
}

// A TTL must be so many times what one write to the leases takes on the servers: a node
// renews four times in a TTL, and a renewal may have to be sent again.
const (
	ttlWritesMin   = 10 // below it the node warns
	ttlWritesLeast = 4  // below it the node does not start
	// TTLReplicated is the shortest TTL on replicated servers without a warning: their
	// elections take 4 to 9 s.
	TTLReplicated = 15 * time.Second
	ttlMeasures   = 3 // writes that are measured if the first one was slow
)

// ErrTTL: the TTL cannot hold on this server.
var ErrTTL = errors.New("shard: the TTL of leases is too short")

// ErrConfig: a Config without what is required.
var ErrConfig = errors.New("shard: config")

// fill puts in the defaults, and lists the shards of all pools.
func (c *Config) fill() (slots []Shard, err error) {
	if c.JS == nil || c.Buckets == nil || len(c.Pools) == 0 || c.Busy == nil || c.Quiet == nil || c.Changed == nil {
		return nil, fmt.Errorf("%w: JS, Buckets, Pools, Busy, Quiet and Changed are required", ErrConfig)
	}
	c.TTL = cmp.Or(c.TTL, TTLDefault)
	if c.TTL < TTLMin || c.TTL%time.Second != 0 {
		return nil, fmt.Errorf("%w: %w: %s; it is whole seconds, at least %s", ErrConfig, ErrTTL, c.TTL, TTLMin)
	}
	c.Settle = cmp.Or(c.Settle, settleParts*c.TTL)
	if c.Load == nil {
		c.Load = func(*Node) {}
	}
	if c.Moved == nil {
		c.Moved = func(string, Move) {}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Node.Pools = nil
	for _, p := range c.Pools {
		if err := bus.Token(p.Name); err != nil || p.Shards < 1 || slices.Contains(c.Node.Pools, p.Name) {
			return nil, fmt.Errorf("%w: pool %q of %d shards: %w", ErrConfig, p.Name, p.Shards, err)
		}
		c.Node.Pools = append(c.Node.Pools, p.Name)
		for n := range p.Shards {
			slots = append(slots, Shard{p.Name, n})
		}
	}
	return slots, nil
}

// Slot is the number of a shard among those of all pools.
func (c *Config) Slot(s Shard) (slot int, ok bool) {
	for _, p := range c.Pools {
		if p.Name == s.Pool {
			return slot + s.N, s.N >= 0 && s.N < p.Shards
		}
		slot += p.Shards
	}
	return 0, false
}
