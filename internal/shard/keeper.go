package shard

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Keeper keeps the leases of one node.
type Keeper struct {
	cfg    Config
	stop   context.CancelFunc
	over   chan struct{}
	poke   chan struct{}
	clock  func() instant
	mu     sync.RWMutex
	naming sync.Mutex       // held while our own key is written
	slots  []Shard          // of all pools; a slot is an index into it
	held   map[int]held     // by slot, as all that follows; changed by the goroutine of keep alone
	doubt  map[int]struct{} // held, but the watch or the leader showed something else
	leases map[Shard]record // by the watch, of all pools, also those that this node does not serve
	nodes  map[string]Seen
	giving map[int]giving // shards to be given
	going  bool           // by Leave
	news   bool           // others are to hear at once what this node says of itself
	asked  bool           // by a key that Ask wrote

	session  string        // which our leases name; "" after its end
	until    instant       // when it ends, unless it is renewed
	lapsed   bool          // it was renewed after until, and nobody else had what is held
	wrote    time.Duration // how long the write that began the session took
	unknown  attempt       // the last renewal whose outcome is not known
	verified int           // how far the leases have been read back; of renewAll alone

	own    uint64 // revision of our own node's key
	seen   uint64 // the same, as the watch has it
	looked uint64 // seen, a tick ago
	missed int    // ticks in which seen stood still, and own did not
	// calm is until when only former shards are taken, and none is given to who is
	// better for it: this node was not heard, so it does not know whether the others
	// are dead or were not heard either, and by its own view it is not there itself.
	calm   time.Time
	former map[int]struct{}  // shards whose leases ended by themselves
	owed   map[int]struct{}  // let go, and the lease may still be there
	vacant map[int]time.Time // since when nobody holds a shard
	better map[int]time.Time // since when another node is the best one for a shard that is held
	ends   map[int]ended     // how the last lease of a shard ended, as the watch had it
}

// giving is a shard that is brought to rest. It is about one epoch: the shard
// may be lost and taken again meanwhile.
type giving struct {
	epoch uint64
	quiet bool
}

// held is a lease of ours.
type held struct {
	epoch   uint64
	session string
}

// record is a lease as the watch has it.
type record struct {
	lease
	revision uint64
}

// Start makes the node known and keeps taking the shards that are its own.
func Start(ctx context.Context, cfg Config) (*Keeper, error) {
	slots, err := cfg.fill()
	if err != nil {
		return nil, err
	}
	k := &Keeper{cfg: cfg, slots: slots, over: make(chan struct{}), poke: make(chan struct{}, 1), clock: clock,
		held: map[int]held{}, doubt: map[int]struct{}{}, leases: map[Shard]record{}, nodes: map[string]Seen{}, giving: map[int]giving{}, former: map[int]struct{}{}, owed: map[int]struct{}{},
		vacant: map[int]time.Time{}, better: map[int]time.Time{}, ends: map[int]ended{}}
	k.cfg.Node.ID = token(cfg.Node.Name) + "-" + nonce()[:8]
	k.cfg.Node.Started, k.cfg.Node.Form = time.Now().UnixMilli(), Form
	if err := k.checkForms(ctx); err != nil {
		return nil, err
	}
	if err := k.announce(ctx); err != nil {
		return nil, err
	}
	if err := k.checkTTL(ctx); err != nil {
		return nil, errors.Join(err, k.withdraw(ctx))
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
	defer k.mu.RUnlock() // the clock is read under it: see renewed
	h, ok := k.held[shard]
	_, doubted := k.doubt[shard]
	return h.epoch, ok && !doubted && h.session == k.session && k.isLive()
}

// Slot is the number under which a Keeper has a shard; not ok for a pool that
// the node does not serve.
func (k *Keeper) Slot(s Shard) (slot int, ok bool) { return k.cfg.Slot(s) }

// Shard is what is behind a slot.
func (k *Keeper) Shard(slot int) Shard { return k.slots[slot] }

// ID is the node's name in leases.
func (k *Keeper) ID() string { return k.cfg.Node.ID }

// Nodes lists the live nodes by their ids, each with the shards that it holds.
func (k *Keeper) Nodes() []Seen {
	k.mu.RLock()
	defer k.mu.RUnlock()
	held := map[string][]Shard{}
	for s := range k.leases {
		if id, ok := k.holder(s); ok {
			held[id] = append(held[id], s)
		}
	}
	list := slices.Collect(maps.Values(k.nodes))
	for i := range list {
		list[i].Holds = held[list[i].ID]
		slices.SortFunc(list[i].Holds, func(a, b Shard) int { return cmp.Or(strings.Compare(a.Pool, b.Pool), a.N-b.N) })
	}
	slices.SortFunc(list, func(a, b Seen) int { return strings.Compare(a.ID, b.ID) })
	return list
}

// keep is the life of the keeper: it plans whenever something changes. What it
// holds is renewed beside that: in a storm, when many shards are taken and given,
// the renewals of the others would come too late, and there would be more to take.
func (k *Keeper) keep(ctx context.Context, watching func()) {
	defer close(k.over)
	// A request that is given up when the node goes may have landed: a lease that
	// nobody gives back, and for whose end others wait.
	work := context.WithoutCancel(ctx)
	var renewing sync.WaitGroup
	defer renewing.Wait()
	renewing.Go(func() { k.renewOn(ctx, work) })
	tick := time.NewTicker(k.cfg.TTL / renewParts)
	defer tick.Stop()
	defer func() { watching() }()
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
		}
	}
}

// renewOn renews what is held, until ctx ends.
func (k *Keeper) renewOn(ctx, work context.Context) {
	tick := time.NewTicker(k.cfg.TTL / renewParts)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			k.renewAll(work)
			k.wake()
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
	changed, news := k.cfg.Node.Leaving != leaving, k.news
	k.cfg.Node.Leaving, k.news = leaving, false
	k.mu.Unlock()
	if news {
		k.renewNode(ctx)
	}
	if changed {
		k.cfg.Logger.Info("the node leaves, or stays again", "node", k.cfg.Node.ID, "leaving", leaving)
		k.renewNode(ctx)
	}
}

// Avoid says that a log of a shard is newer than this node: others are to have
// it, if any of them knows more. It holds until this node ends.
func (k *Keeper) Avoid(slot int) {
	s := k.slots[slot]
	k.mu.Lock()
	known := slices.Contains(k.cfg.Node.Avoids[s.Pool], s.N)
	if !known {
		avoids := maps.Clone(k.cfg.Node.Avoids) // others read the old one
		if avoids == nil {
			avoids = map[string][]int{}
		}
		avoids[s.Pool] = append(slices.Clip(avoids[s.Pool]), s.N)
		k.cfg.Node.Avoids, k.news = avoids, true
	}
	k.mu.Unlock()
	if !known {
		k.wake()
	}
}

// CannotRead says that a shard cannot be read here, or can be again. It reports whether
// that is news.
func (k *Keeper) CannotRead(slot int, is bool) (news bool) {
	s := k.slots[slot]
	k.mu.Lock()
	known := slices.Contains(k.cfg.Node.Unreadable[s.Pool], s.N)
	if news = known != is; news {
		all := maps.Clone(k.cfg.Node.Unreadable) // others read the old one
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
		k.cfg.Node.Unreadable, k.news = all, true
	}
	k.mu.Unlock()
	if news {
		k.wake()
	}
	return news
}

func (k *Keeper) key(slot int) string {
	return k.slots[slot].Pool + "." + strconv.Itoa(k.slots[slot].N)
}

func (k *Keeper) value(session string) []byte {
	return encode(lease{Node: k.cfg.Node.ID, Session: session, Form: Form})
}

// holder names the node whose valid lease the watch shows. mu is held.
func (k *Keeper) holder(s Shard) (id string, ok bool) {
	r, ok := k.leases[s]
	if !ok || r.Form > Form {
		return r.Node, ok // of a newer form: this program cannot judge it
	}
	return r.Node, k.nodes[r.Node].Session == r.Session && r.Session != ""
}

func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic("shard: a value of ours does not encode: " + err.Error())
	}
	return data
}
