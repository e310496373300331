package jetstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/mailbox"
)

// ErrNoPool says that a pool has no streams.
var ErrNoPool = errors.New("jetstream: there is no such pool")

// streamPools are the pools that this process has opened. Each is opened once, and stays open: its streams and the number
// of its shards are fixed for its life.
type streamPools struct {
	cfg     *Config
	js      jetstream.JetStream
	domain  string // of the server's JetStream, which each acknowledgement names
	readers *readers

	mu     sync.Mutex
	byName map[string]*streamPool // by the name that addresses have; "" is the base pool
}

// streamPool holds the streams of a pool that was opened.
type streamPool struct {
	pools   *streamPools
	name    string // in subjects
	within  string // in addresses: "" for the base pool
	shards  int
	streams []*poolStream
}

// poolStream is one stream of a pool.
type poolStream struct {
	jetstream.Stream
	pool *streamPool
	acks ackParser // of the appends to it
}

// Make creates the streams of a pool, or opens existing ones, whose numbers of shards and
// streams then apply. It returns the number of shards.
func (p *Post) Make(ctx context.Context, name string, shards, streams int) (int, error) {
	pl, err := p.pools.open(ctx, p.pools.addressName(name))
	if errors.Is(err, ErrNoPool) {
		pl, err = p.pools.create(ctx, name, shards, streams)
	}
	if err != nil {
		return 0, err
	}
	return pl.shards, nil
}

// Pool opens an existing pool, and returns the number of its shards.
func (p *Post) Pool(ctx context.Context, name string) (shards int, err error) {
	pl, err := p.pools.open(ctx, p.pools.addressName(name))
	if err != nil {
		return 0, err
	}
	return pl.shards, nil
}

// Pools lists the pools on the server by their names.
func (p *Post) Pools(ctx context.Context) ([]string, error) {
	all, err := p.pools.all(ctx)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(all))
	for i, pl := range all {
		names[i] = pl.name
	}
	slices.Sort(names)
	return names, nil
}

// addressName is the name of a pool in addresses.
func (p *streamPools) addressName(name string) string {
	if name == p.cfg.Pool {
		return ""
	}
	return name
}

// create creates the streams of a pool with these numbers, or checks that existing ones have
// them.
func (p *streamPools) create(ctx context.Context, name string, shards, streams int) (*streamPool, error) {
	pl := &streamPool{pools: p, name: name, within: p.addressName(name), shards: shards}
	if err := names.CheckToken(name); err != nil {
		return nil, fmt.Errorf("jetstream: pool: %w", err)
	}
	for n := range streams {
		s, err := pl.openStream(ctx, n, streams)
		if err != nil {
			return nil, fmt.Errorf("jetstream: open pool %s: %w", name, err)
		}
		pl.streams = append(pl.streams, &poolStream{s, pl, newAcker(s.CachedInfo().Config.Name, p.domain)})
	}
	return p.keep(pl), nil
}

func (p *streamPools) keep(pl *streamPool) *streamPool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.byName[pl.within]; known != nil {
		return known
	}
	p.byName[pl.within] = pl
	return pl
}

// known returns a pool that was opened, by its name in addresses.
func (p *streamPools) known(within string) *streamPool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byName[within]
}

func (p *streamPools) opened() []*streamPool {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]*streamPool, 0, len(p.byName))
	for _, pl := range p.byName {
		list = append(list, pl)
	}
	slices.SortFunc(list, func(a, b *streamPool) int { return strings.Compare(a.within, b.within) })
	return list
}

// open opens a pool by its name in addresses. The streams record how many shards the pool
// has.
func (p *streamPools) open(ctx context.Context, within string) (*streamPool, error) {
	if pl := p.known(within); pl != nil {
		return pl, nil
	}
	if err := names.CheckToken(within); err != nil {
		return nil, fmt.Errorf("jetstream: pool: %w", err)
	}
	s, err := p.js.Stream(ctx, p.cfg.Names.BoxStream(within, 0))
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, fmt.Errorf("%w: %s", ErrNoPool, within)
	}
	if err != nil {
		return nil, fmt.Errorf("jetstream: open pool %s: %w", within, err)
	}
	meta := s.CachedInfo().Config.Metadata
	shards, _ := strconv.Atoi(meta[names.MetaShards]) // 0 is rejected below
	streams, _ := strconv.Atoi(meta[names.MetaStreams])
	if shards < 1 || streams < 1 || streams > shards {
		return nil, fmt.Errorf("%w: %s was made with %q shards and %q streams", ErrLayout, s.CachedInfo().Config.Name, meta[names.MetaShards], meta[names.MetaStreams])
	}
	return p.create(ctx, within, shards, streams)
}

// poolPause is the pause before the next look for a missing pool.
const poolPause = time.Second

// await returns the pool as soon as it exists.
func (p *streamPools) await(ctx context.Context, within string) (*streamPool, error) {
	for {
		pl, err := p.open(ctx, within)
		if err == nil {
			return pl, nil
		}
		p.cfg.Logger.Warn("a pool is unreachable; its messages wait", "pool", within, "error", err)
		select {
		case <-time.After(poolPause):
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", mailbox.ErrClosed, context.Cause(ctx))
		case <-p.readers.closing.Done():
			return nil, mailbox.ErrClosed
		}
	}
}

// all returns the pools on the server, the base pool first.
func (p *streamPools) all(ctx context.Context) ([]*streamPool, error) {
	if p.cfg.Others {
		list := p.js.StreamNames(ctx, jetstream.WithStreamListSubject(p.cfg.Names.AllBoxes()))
		for name := range list.Name() {
			pool, _, ok := p.cfg.Names.ParseBoxStream(name)
			if !ok {
				continue
			}
			if _, err := p.open(ctx, p.addressName(pool)); err != nil && !errors.Is(err, ErrNoPool) {
				return nil, err
			}
		}
		if err := list.Err(); err != nil {
			return nil, fmt.Errorf("jetstream: list the pools: %w", err)
		}
	}
	return p.opened(), nil
}

func (pl *streamPool) streamConfig(n, streams int) jetstream.StreamConfig {
	cfg := pl.pools.cfg
	c := jetstream.StreamConfig{
		Name:        cfg.Names.BoxStream(pl.name, n),
		Description: "troupe mailboxes: the logs of actors; only nodes may write",
		Storage:     jetstream.FileStorage,
		Discard:     jetstream.DiscardNew,
		MaxMsgSize:  mailbox.EntryBytesMax,
		MaxBytes:    cfg.BytesMax / int64(streams),
		DenyDelete:  true,
		Replicas:    cfg.Replicas,
		Metadata: map[string]string{
			names.MetaShards:  strconv.Itoa(pl.shards),
			names.MetaStreams: strconv.Itoa(streams),
		},
	}
	for shard := n; shard < pl.shards; shard += streams {
		c.Subjects = append(c.Subjects, cfg.Names.ShardSubjects(pl.name, shard))
	}
	return c
}

// openStream returns the n-th stream, which it creates if necessary.
func (pl *streamPool) openStream(ctx context.Context, n, streams int) (jetstream.Stream, error) {
	js, want := pl.pools.js, pl.streamConfig(n, streams)
	s, err := js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		s, err = js.CreateStream(ctx, want)
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			s, err = js.Stream(ctx, want.Name)
		}
	}
	if err != nil {
		return nil, creationError(want.Name, err)
	}
	return s, checkSettings(want, s.CachedInfo().Config)
}

// homeOf returns the subject and the stream of an address.
func (pl *streamPool) homeOf(at mailbox.Address) (subject string, s *poolStream, err error) {
	shard := mailbox.Shard(at, pl.shards)
	subject, err = pl.pools.cfg.Names.BoxSubject(pl.name, shard, at)
	return subject, pl.streams[shard%len(pl.streams)], err
}

// parseSubject parses the subject of a log; ok is false if the subject is not that of a log.
func (pl *streamPool) parseSubject(subject string) (at mailbox.Address, ok bool) {
	name, shard, at, err := pl.pools.cfg.Names.ParseBox(subject)
	if err != nil || name != pl.name || shard != mailbox.Shard(at, pl.shards) {
		return "", false
	}
	return at.In(pl.within), true
}

// findHome returns the subject and the stream of an address, and opens a pool that was not seen
// before.
func (p *streamPools) findHome(ctx context.Context, at mailbox.Address) (subject string, s *poolStream, err error) {
	pl, err := p.open(ctx, at.Pool())
	if err != nil {
		return "", nil, err
	}
	return pl.homeOf(at)
}
