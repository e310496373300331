package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/troupe-run/troupe/bus"
	"github.com/troupe-run/troupe/client"
)

// theatre is a cluster under blows: the server and the double live, the nodes
// come and go.
type theatre struct {
	o       options
	p       *provider
	stage   stage
	broker  broker
	client  *client.Client
	nodes   *nodes
	witness *witness
	unwatch func()
	load    *load
	blows   []*blow
	began   time.Time
	found   problems
	harm    *harm          // nil: nothing happens to the server
	stale   map[string]int // see folded
	// Of zombies: how many were made, how often nobody came by at a trap, and what
	// became of them, by group.
	undead, missed int
	afterlives     map[string]afterlife
	// Of all children, and of those that began on another node than their parent.
	children, elsewhere int
	canceled            int // runs
}

// cluster plays, and judges.
func cluster(o options) (err error) {
	dir, err := os.MkdirTemp("", "troupe-chaos-")
	if err != nil {
		return err
	}
	defer interruptible(dir, o.keep)()
	defer func() {
		if o.keep || err != nil {
			fmt.Println("kept, with what the nodes said, the problems and the logs of their runs:", dir)
			return
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	o.sabotage()
	if o.slow > 0 {
		if err := tracer(); err != nil {
			return missing(o, err)
		}
	}
	if err := o.binaries(dir); err != nil {
		return err
	}
	o.settle()
	t := &theatre{o: o, p: newProvider(o.turns), began: time.Now(), stale: map[string]int{}, afterlives: map[string]afterlife{}}
	defer t.p.Close()
	if t.stage, err = newStage(o, t.p, dir); err != nil {
		return err
	}
	if err := t.open(); err != nil {
		return errors.Join(err, t.close())
	}
	t.scene()()
	err = t.nodes.end()
	t.judge()
	t.harm.judge()
	if o.keep {
		err = errors.Join(err, t.witness.write(filepath.Join(dir, "slowest")))
	}
	verdict := t.print()
	return errors.Join(err, t.keep(), t.close(), verdict)
}

// binaries builds what was not given.
func (o *options) binaries(dir string) (err error) {
	if o.troupe, err = built(o.troupe, dir, "troupe", "cli"); err != nil {
		return err
	}
	if o.node, err = built(o.node, dir, "troupe-node", "node", "-tags", "chaos"); err != nil || !o.upgrade {
		return err
	}
	err = o.youngest(dir)
	if o.broken {
		o.node = o.younger
	}
	return err
}

// settle gives a play the numbers that go with it.
func (o *options) settle() {
	if o.gap == 0 {
		o.gap = o.ttl
	}
	if o.tokens == 0 {
		o.tokens = runTokens
	}
	switch {
	case o.trees+o.purses > 0:
		o.kills, o.runs = 0, 0
	case o.bombs+o.watchers > 0:
		o.kills = 0
	case o.upgrade:
		o.kills, o.atOnce = 1, upgradeHeld
	case o.slow > 0 || o.full != "":
		o.kills, o.servers = 0, max(o.servers, 1)
	case o.leaks > 0:
		o.turns, o.kills = 1, 0
	}
	if o.busy > 0 {
		o.turns, o.runs, o.atOnce, o.kills = 1, o.busy, o.busy, 1-min(o.drains, 1)
	}
}

// open starts the server, the nodes and the witness.
func (t *theatre) open() error {
	if t.o.servers > 0 {
		return t.openServers()
	}
	server, err := bus.StartEmbedded(bus.EmbeddedConfig{StateDir: filepath.Join(t.stage.dir, "state"), Port: bus.FreePort, Lazy: true})
	if err != nil {
		return err
	}
	t.broker = alone{server}
	return t.people()
}

// people starts the nodes and those who ask and look.
func (t *theatre) people() (err error) {
	if t.client, err = client.Dial(t.broker.options(bus.RoleClient, ""), ""); err != nil {
		return err
	}
	t.witness = &witness{acts: map[string]map[string]string{}, orphans: map[string]*blow{}, told: map[string][]sight{}}
	if t.unwatch, err = t.client.Watch(t.witness.see); err != nil {
		return err
	}
	t.nodes = &nodes{t: t}
	for range t.o.nodes {
		if err := t.nodes.start(); err != nil {
			return err
		}
	}
	t.load = newLoad(t)
	return t.spread()
}

const (
	// spreadPatience is how long nodes may take to share the shards.
	spreadPatience = 60 * time.Second
	// spreadStill is for how long no shard must have moved.
	spreadStill = 2 * time.Second
	// spreadTries is how often nodes to which chance gave no shard are exchanged.
	spreadTries = 10
)

// spread waits until every node holds a part of the shards, and none is on its
// way any more: what moves later moves because of what is done here. Shards go to
// nodes by chance; one that got none leaves in order, and another takes its place.
func (t *theatre) spread() error {
	for range spreadTries {
		empty, err := t.settled()
		if err != nil || len(empty) == 0 {
			return err
		}
		for _, name := range empty {
			fmt.Printf("%s got no shard: another node takes its place\n", name)
			if err := t.nodes.exchange(name); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("in %d tries there was always a node without a shard", spreadTries)
}

// settled waits until no shard moves any more. empty are the nodes that hold none
// of a pool.
func (t *theatre) settled() (empty []string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), spreadPatience+2*t.o.ttl)
	defer cancel()
	was, since := "", time.Now()
	for {
		list, err := t.client.Nodes(ctx)
		if err != nil && !client.Lost(err) {
			return nil, err
		}
		var held string
		held, empty = shares(list)
		if held != was || len(list) != t.o.nodes {
			was, since = held, time.Now()
		}
		still := time.Since(since)
		if still > spreadStill && len(empty) == 0 || still > 2*t.o.ttl+spreadStill { // who has just come has none yet
			return empty, nil
		}
		if err := pause(ctx, poll); err != nil {
			return nil, fmt.Errorf("the nodes never shared the shards: %w: %s", err, held)
		}
	}
}

// shares is who holds what, and who holds nothing of a pool.
func shares(list []client.NodeInfo) (held string, empty []string) {
	for _, n := range list {
		held += fmt.Sprintln(n.ID, n.Pools)
		if len(n.Shards) == 0 || len(n.Pools[bus.MachinePool(machine)]) == 0 {
			empty = append(empty, n.Name)
		}
	}
	return held, empty
}

// poll is how often is looked whether something has come about.
const poll = 50 * time.Millisecond

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *theatre) close() error {
	if t.nodes != nil {
		t.nodes.kill()
	}
	if t.unwatch != nil {
		t.unwatch()
	}
	if t.client != nil {
		t.client.Close()
	}
	err := t.harm.close()
	if t.broker == nil {
		return err
	}
	return errors.Join(err, t.broker.Close())
}

// scene is what is played.
func (t *theatre) scene() func() {
	switch {
	case t.o.trees > 0:
		return t.playTrees
	case t.o.busy > 0:
		return t.playBusy
	case t.o.watchers > 0:
		return t.playWatchers
	case t.o.purses > 0:
		return t.playPurses
	case t.o.bombs > 0:
		return t.playBombs
	case t.o.slow > 0:
		return t.playSlow
	case t.o.upgrade:
		return t.playUpgrade
	case t.o.full != "":
		return t.playFull
	case t.o.poison:
		return t.playPoison
	case t.o.leaks > 0:
		return t.playLeaks
	}
	return t.play
}

// play deals blows while runs go on, and waits for the end of all.
func (t *theatre) play() {
	fmt.Printf("seed %d: %d nodes, TTL %v, %d kills, %d stops, %d drains over %d runs\n", t.o.seed, t.o.nodes, t.o.ttl, t.o.kills, t.o.stops, t.o.drains, t.o.runs)
	fmt.Println("  # |       at | blow   | node   | runs | what it came to")
	t.load.begin()
	t.harm.begin()
	random := rand.New(rand.NewPCG(t.o.seed, 0))
	for next := t.schedule(random); ; {
		kind, ok := next()
		if !ok {
			break
		}
		time.Sleep(t.o.gap/4 + time.Duration(random.Int64N(int64(t.o.gap*3/2))))
		b := &blow{kind: kind, no: len(t.blows) + 1, frozen: t.o.ttl + time.Second + time.Duration(random.Int64N(int64(t.o.ttl))),
			ask: random.IntN(2) == 0, place: t.place(kind, random)}
		victim, err := t.aim(random, b)
		if err != nil {
			t.found.add("%v", err)
			break
		}
		t.blows = append(t.blows, b)
		t.nodes.deal(victim, b)
	}
	t.nodes.settle()
	t.harm.over()
	t.load.finish()
	t.indexed()
}

// aim picks whom a blow is for. At a place it has been dealt by then.
func (t *theatre) aim(random *rand.Rand, b *blow) (*member, error) {
	if b.place != "" {
		return t.trapped(random, b)
	}
	m := t.nodes.victim(random)
	b.node, b.at = m.name, time.Now()
	return m, nil
}

// schedule is the kinds of blows in a random order, once or, with -for, again
// and again until the time is over.
func (t *theatre) schedule(random *rand.Rand) func() (string, bool) {
	var all []string
	for _, k := range []struct {
		kind string
		n    int
	}{{killed, t.o.kills}, {stopped, t.o.stops}, {drained, t.o.drains}, {pointed, t.o.points}, {undead, len(zombies) * t.o.zombies}} {
		for range k.n {
			all = append(all, k.kind)
		}
	}
	order, i := []int(nil), 0
	return func() (string, bool) {
		if i == len(order) && len(all) > 0 && (order == nil || time.Since(t.began) < t.o.length) {
			order, i = random.Perm(len(all)), 0
		}
		if i == len(order) || t.o.length > 0 && time.Since(t.began) > t.o.length {
			return "", false
		}
		i++
		return all[order[i-1]], true
	}
}
