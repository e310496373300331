package shard

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/bus"
	"github.com/troupe-run/troupe/mailbox"
)

// Node is a live node as others see it.
type Node struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Host    string `json:"host,omitempty"`
	PID     int    `json:"pid,omitempty"`
	Version string `json:"version,omitempty"`
	Started int64  `json:"started_ms"`
	Leaving bool   `json:"leaving,omitempty"`
	// Profile is what the server promises as this node saw it when it started, and
	// Unproven which checks of it were not seen to hold.
	Profile  string `json:"profile,omitempty"`
	Unproven string `json:"unproven,omitempty"`
	// Live and Resting are how many actors it runs, and how many wait in logs that
	// it holds, when it last said that it lives.
	Live    int64 `json:"live,omitempty"`
	Resting int64 `json:"resting,omitempty"`
}

// lease is the value of a lease.
type lease struct {
	Node  string `json:"node"`
	Nonce string `json:"nonce"`
}

// TTLs of leases. The default is longer than a NATS cluster takes to find
// another leader (4 to 9 s, reference of the server): a shorter one makes every
// failover look like the death of all nodes.
const (
	TTLDefault = 20 * time.Second
	TTLMin     = 2 * time.Second
	renewParts = 4 // a lease is renewed so often within its TTL
	renewersAt = 8 // renewals at once
)

// Config of a Keeper. All but TTL, Pool and Logger are required.
type Config struct {
	JS      jetstream.JetStream
	Buckets *bus.Buckets
	Names   bus.Names
	Node    Node // its ID is made by Start
	Shards  int
	Pool    string        // default "default"
	TTL     time.Duration // whole seconds; default TTLDefault
	// Busy reports whether something is under way in a shard that this node holds.
	Busy func(shard int) bool
	// Quiet brings what is under way in a shard that is to be given to an end, lets
	// nothing new begin in it under this epoch, and calls done, once, from any goroutine.
	Quiet func(shard int, epoch uint64, done func())
	// Changed tells that shards were gained or lost. A shard is gained also when
	// its lease was over for a moment, and nobody else had it. It is called from
	// one goroutine and should not take longer than a renewal.
	Changed func(gained, lost []int)
	// Actors counts what Node says of them. Default: nobody counts.
	Actors func() (live, resting int64)
	Logger *slog.Logger // default: discard
}

// ErrConfig: a Config without what is required.
var ErrConfig = errors.New("shard: config")

// Keeper keeps the leases of one node.
type Keeper struct {
	cfg    Config
	nonce  string
	stop   context.CancelFunc
	over   chan struct{}
	poke   chan struct{}
	mu     sync.RWMutex
	held   map[int]held
	others map[int]string // holders by the watch, ours too
	nodes  map[string]Node
	giving map[int]giving // shards to be given
	going  bool           // by Leave
	asked  bool           // by a key that Ask wrote

	own    uint64 // revision of our own node's key
	seen   uint64 // the same, as the watch has it
	looked uint64 // seen, a tick ago
	missed int    // ticks in which seen stood still, and own did not
	// calm is until when only former shards are taken: this node was not heard, so
	// it does not know whether the others are dead or were not heard either.
	calm   time.Time
	former map[int]struct{}  // shards whose leases ended by themselves
	vacant map[int]time.Time // since when nobody holds a shard
}

// giving is a shard that is brought to rest. It is about one epoch: the shard
// may be lost and taken again meanwhile.
type giving struct {
	epoch uint64
	quiet bool
}

// held is a lease of ours. until is by the monotonic clock, counted from before
// the write that acquired or renewed it was sent.
type held struct {
	epoch    uint64
	revision uint64
	until    time.Time
	lapsed   bool // it was renewed after until, and nobody else had it
}

// Start makes the node known and keeps taking the shards that are its own.
func Start(ctx context.Context, cfg Config) (*Keeper, error) {
	if cfg.JS == nil || cfg.Buckets == nil || cfg.Shards < 1 || cfg.Busy == nil || cfg.Quiet == nil || cfg.Changed == nil {
		return nil, fmt.Errorf("%w: JS, Buckets, Shards, Busy, Quiet and Changed are required", ErrConfig)
	}
	cfg.TTL = cmp.Or(cfg.TTL, TTLDefault)
	if cfg.TTL < TTLMin || cfg.TTL%time.Second != 0 {
		return nil, fmt.Errorf("%w: a TTL of %s; it is whole seconds, at least %s", ErrConfig, cfg.TTL, TTLMin)
	}
	cfg.Pool = cmp.Or(cfg.Pool, "default")
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	k := &Keeper{cfg: cfg, nonce: nonce(), over: make(chan struct{}), poke: make(chan struct{}, 1),
		held: map[int]held{}, others: map[int]string{}, nodes: map[string]Node{}, giving: map[int]giving{}, former: map[int]struct{}{}, vacant: map[int]time.Time{}}
	k.cfg.Node.ID = token(cfg.Node.Name) + "-" + k.nonce[:8]
	k.cfg.Node.Started = time.Now().UnixMilli()
	if err := k.announce(ctx); err != nil {
		return nil, err
	}
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	k.stop = stop
	watching, err := k.watch(ctx, life)
	if err != nil {
		stop()
		return nil, err
	}
	go k.keep(life, watching)
	return k, nil
}

func nonce() string {
	var b [8]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return hex.EncodeToString(b[:])
}

// token makes a name fit for a key.
func token(name string) string {
	b := []byte(cmp.Or(name, "node"))
	for i, c := range b {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			b[i] = '-'
		}
	}
	return string(b)
}

// Holds reports whether this node may try to act on a shard, and under which
// epoch. It is false from the moment when others may have taken it.
func (k *Keeper) Holds(shard int) (epoch uint64, ok bool) {
	k.mu.RLock()
	defer k.mu.RUnlock() // the clock is read under it: see renew
	h, ok := k.held[shard]
	return h.epoch, ok && time.Now().Before(h.until)
}

// HoldsAddress is Holds for the shard of an address.
func (k *Keeper) HoldsAddress(at mailbox.Address) (epoch uint64, ok bool) {
	return k.Holds(mailbox.Shard(at, k.cfg.Shards))
}

// ID is the node's name in leases.
func (k *Keeper) ID() string { return k.cfg.Node.ID }

// Nodes lists the live nodes, each with the shards that it holds.
func (k *Keeper) Nodes() map[Node][]int {
	k.mu.RLock()
	defer k.mu.RUnlock()
	list := map[Node][]int{}
	for _, n := range k.nodes {
		list[n] = nil
	}
	for s, id := range k.others {
		if n, ok := k.nodes[id]; ok {
			list[n] = append(list[n], s)
		}
	}
	for n := range list {
		slices.Sort(list[n])
	}
	return list
}

// keep is the life of the keeper: it plans whenever something changes, and
// renews what it holds.
func (k *Keeper) keep(ctx context.Context, watching func()) {
	defer close(k.over)
	defer func() { watching() }()
	// A request that is given up when the node goes may have landed: a lease that
	// nobody gives back, and for whose end others wait.
	work := context.WithoutCancel(ctx)
	tick := time.NewTicker(k.cfg.TTL / renewParts)
	defer tick.Stop()
	for {
		k.say(work)
		k.plan(work)
		select {
		case <-ctx.Done():
			return
		case <-k.poke:
		case <-tick.C:
			if k.blind() {
				watching = k.lookAgain(ctx, watching)
			}
			k.renewAll(work)
		}
	}
}

// soon ends what a round of requests may take: a server that does not answer
// must not keep the keeper from the next round.
func (k *Keeper) soon(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, k.cfg.TTL/renewParts)
}

// say tells the others at once when this node begins or stops to leave.
func (k *Keeper) say(ctx context.Context) {
	k.mu.Lock()
	leaving := k.going || k.asked
	changed := k.cfg.Node.Leaving != leaving
	k.cfg.Node.Leaving = leaving
	k.mu.Unlock()
	if changed {
		k.cfg.Logger.Info("the node leaves, or stays again", "node", k.cfg.Node.ID, "leaving", leaving)
		k.renewNode(ctx)
	}
}

// plan takes and gives what the present view asks for.
func (k *Keeper) plan(ctx context.Context) {
	p := k.next()
	taking, cancel := k.soon(ctx)
	defer cancel()
	gained := each(p.Take, func(s int) bool { return k.take(taking, s) })
	for _, s := range p.Give {
		k.quieten(s)
	}
	var lost []int
	for _, s := range k.quiet() {
		if k.letGo(s) {
			lost = append(lost, s)
		}
	}
	k.tell(gained, lost)
	freeing, enough := k.soon(ctx)
	defer enough()
	each(lost, func(s int) bool { return k.free(freeing, s) })
}

// each calls do for shards, some at a time, and returns those that it is true for.
func each(shards []int, do func(shard int) bool) (list []int) {
	var wait sync.WaitGroup
	is := make([]bool, len(shards))
	turn := make(chan struct{}, renewersAt)
	for i, s := range shards {
		turn <- struct{}{}
		wait.Go(func() {
			defer func() { <-turn }()
			is[i] = do(s)
		})
	}
	wait.Wait()
	for i, s := range shards {
		if is[i] {
			list = append(list, s)
		}
	}
	return list
}

// quieten has a shard brought to rest, once.
func (k *Keeper) quieten(shard int) {
	k.mu.Lock()
	_, begun := k.giving[shard]
	h, ok := k.held[shard]
	if !begun && ok {
		k.giving[shard] = giving{epoch: h.epoch}
	}
	k.mu.Unlock()
	if begun || !ok {
		return
	}
	k.cfg.Quiet(shard, h.epoch, func() {
		k.mu.Lock()
		if k.giving[shard].epoch == h.epoch {
			k.giving[shard] = giving{h.epoch, true}
		}
		k.mu.Unlock()
		k.wake()
	})
}

// quiet are the shards that can be given now.
func (k *Keeper) quiet() []int {
	k.mu.Lock()
	defer k.mu.Unlock()
	var list []int
	for s, g := range k.giving {
		if g.quiet {
			list = append(list, s)
			delete(k.giving, s)
		}
	}
	slices.Sort(list)
	return list
}

func (k *Keeper) tell(gained, lost []int) {
	if len(gained)+len(lost) == 0 {
		return
	}
	k.cfg.Logger.Info("shards", "node", k.cfg.Node.ID, "gained", gained, "lost", lost)
	k.cfg.Changed(gained, lost)
}

func (k *Keeper) next() Plan {
	k.mu.Lock()
	now := time.Now()
	v := View{Self: k.cfg.Node.ID, Shards: k.cfg.Shards, Busy: k.cfg.Busy, Holders: map[int]string{},
		Free: map[int]time.Duration{}, Patience: k.cfg.TTL / renewParts}
	for s, id := range k.others {
		if id != k.cfg.Node.ID {
			v.Holders[s] = id
		}
	}
	for s := range k.held {
		v.Holders[s] = k.cfg.Node.ID
	}
	for id, n := range k.nodes {
		if !n.Leaving {
			v.Nodes = append(v.Nodes, id)
		}
	}
	for s := range k.cfg.Shards {
		since, ok := k.vacant[s]
		if _, held := v.Holders[s]; held {
			delete(k.vacant, s)
		} else if ok {
			v.Free[s] = now.Sub(since)
		} else {
			k.vacant[s] = now
		}
	}
	going, calm, former := k.going || k.asked, now.Before(k.calm), maps.Clone(k.former)
	k.mu.Unlock()
	if going {
		return leaving(v)
	}
	p := Next(v)
	if calm {
		p.Take = slices.DeleteFunc(p.Take, func(s int) bool { _, ours := former[s]; return !ours })
	}
	return p
}

func (k *Keeper) key(shard int) string { return k.cfg.Pool + "." + strconv.Itoa(shard) }

func (k *Keeper) value() []byte { return encode(lease{Node: k.cfg.Node.ID, Nonce: k.nonce}) }

func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic("shard: a value of ours does not encode: " + err.Error())
	}
	return data
}
