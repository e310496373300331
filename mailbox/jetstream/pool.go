package jetstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/mailbox"
)

// ErrNoPool says that a pool has no streams.
var ErrNoPool = errors.New("jetstream: there is no such pool")

// pool holds the streams of a pool that was opened.
type pool struct {
	post    *Post
	name    string // in subjects
	within  string // in addresses: "" for the base pool
	shards  int
	streams []*stream
}

// stream is one stream of a pool.
type stream struct {
	jetstream.Stream
	pool *pool
	acks acker // of the appends to it
}

// Make creates the streams of a pool, or opens existing ones, whose numbers of shards and
// streams then apply. It returns the number of shards.
func (p *Post) Make(ctx context.Context, name string, shards, streams int) (int, error) {
	pl, err := p.pool(ctx, p.within(name))
	if errors.Is(err, ErrNoPool) {
		pl, err = p.make(ctx, name, shards, streams)
	}
	if err != nil {
		return 0, err
	}
	return pl.shards, nil
}

// Pool opens an existing pool, and returns the number of its shards.
func (p *Post) Pool(ctx context.Context, name string) (shards int, err error) {
	pl, err := p.pool(ctx, p.within(name))
	if err != nil {
		return 0, err
	}
	return pl.shards, nil
}

// Pools lists the pools on the server by their names.
func (p *Post) Pools(ctx context.Context) ([]string, error) {
	all, err := p.all(ctx)
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

// within is the name of a pool in addresses.
func (p *Post) within(name string) string {
	if name == p.cfg.Pool {
		return ""
	}
	return name
}

// make creates the streams of a pool with these numbers, or checks that existing ones have
// them.
func (p *Post) make(ctx context.Context, name string, shards, streams int) (*pool, error) {
	pl := &pool{post: p, name: name, within: p.within(name), shards: shards}
	if err := names.Token(name); err != nil {
		return nil, fmt.Errorf("jetstream: pool: %w", err)
	}
	for n := range streams {
		s, err := pl.stream(ctx, n, streams)
		if err != nil {
			return nil, fmt.Errorf("jetstream: open pool %s: %w", name, err)
		}
		pl.streams = append(pl.streams, &stream{s, pl, newAcker(s.CachedInfo().Config.Name, p.domain)})
	}
	return p.keep(pl), nil
}

func (p *Post) keep(pl *pool) *pool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.pools[pl.within]; known != nil {
		return known
	}
	p.pools[pl.within] = pl
	return pl
}

// known returns a pool that was opened, by its name in addresses.
func (p *Post) known(within string) *pool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pools[within]
}

func (p *Post) opened() []*pool {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]*pool, 0, len(p.pools))
	for _, pl := range p.pools {
		list = append(list, pl)
	}
	slices.SortFunc(list, func(a, b *pool) int { return strings.Compare(a.within, b.within) })
	return list
}

// pool opens a pool by its name in addresses. The streams record how many shards the pool
// has.
func (p *Post) pool(ctx context.Context, within string) (*pool, error) {
	if pl := p.known(within); pl != nil {
		return pl, nil
	}
	if err := names.Token(within); err != nil {
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
	return p.make(ctx, within, shards, streams)
}

// poolPause is the pause before the next look for a missing pool.
const poolPause = time.Second

// await returns the pool as soon as it exists.
func (p *Post) await(ctx context.Context, within string) (*pool, error) {
	for {
		pl, err := p.pool(ctx, within)
		if err == nil {
			return pl, nil
		}
		p.cfg.Logger.Warn("a pool is out of reach; what is for it waits", "pool", within, "error", err)
		select {
		case <-time.After(poolPause):
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", mailbox.ErrClosed, context.Cause(ctx))
		case <-p.closing.Done():
			return nil, mailbox.ErrClosed
		}
	}
}

// all returns the pools on the server, the base pool first.
func (p *Post) all(ctx context.Context) ([]*pool, error) {
	if p.cfg.Others {
		list := p.js.StreamNames(ctx, jetstream.WithStreamListSubject(p.cfg.Names.Boxes()))
		for name := range list.Name() {
			pool, _, ok := p.cfg.Names.ParseBoxStream(name)
			if !ok {
				continue
			}
			if _, err := p.pool(ctx, p.within(pool)); err != nil && !errors.Is(err, ErrNoPool) {
				return nil, err
			}
		}
		if err := list.Err(); err != nil {
			return nil, fmt.Errorf("jetstream: list the pools: %w", err)
		}
	}
	return p.opened(), nil
}

func (pl *pool) config(n, streams int) jetstream.StreamConfig {
	cfg := &pl.post.cfg
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
		c.Subjects = append(c.Subjects, cfg.Names.BoxShard(pl.name, shard))
	}
	return c
}

// stream returns the n-th stream, which it creates if necessary.
func (pl *pool) stream(ctx context.Context, n, streams int) (jetstream.Stream, error) {
	js, want := pl.post.js, pl.config(n, streams)
	s, err := js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		s, err = js.CreateStream(ctx, want)
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			s, err = js.Stream(ctx, want.Name)
		}
	}
	if err != nil {
		return nil, refusal(want.Name, err)
	}
	return s, fits(want, s.CachedInfo().Config)
}

// home returns the subject and the stream of an address.
func (pl *pool) home(at mailbox.Address) (subject string, s *stream, err error) {
	shard := mailbox.Shard(at, pl.shards)
	subject, err = pl.post.cfg.Names.Box(pl.name, shard, at)
	return subject, pl.streams[shard%len(pl.streams)], err
}

// log parses the subject of a log; ok is false if the subject is not that of a log.
func (pl *pool) log(subject string) (at mailbox.Address, ok bool) {
	name, shard, at, err := pl.post.cfg.Names.ParseBox(subject)
	if err != nil || name != pl.name || shard != mailbox.Shard(at, pl.shards) {
		return "", false
	}
	return at.In(pl.within), true
}
