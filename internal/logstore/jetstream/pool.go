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

// streamPool holds the streams of a pool that was opened.
type streamPool struct {
	post    *Post
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
	pl, err := p.openPool(ctx, p.addressPool(name))
	if errors.Is(err, ErrNoPool) {
		pl, err = p.makePool(ctx, name, shards, streams)
	}
	if err != nil {
		return 0, err
	}
	return pl.shards, nil
}

// Pool opens an existing pool, and returns the number of its shards.
func (p *Post) Pool(ctx context.Context, name string) (shards int, err error) {
	pl, err := p.openPool(ctx, p.addressPool(name))
	if err != nil {
		return 0, err
	}
	return pl.shards, nil
}

// Pools lists the pools on the server by their names.
func (p *Post) Pools(ctx context.Context) ([]string, error) {
	all, err := p.allPools(ctx)
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

// addressPool is the name of a pool in addresses.
func (p *Post) addressPool(name string) string {
	if name == p.cfg.Pool {
		return ""
	}
	return name
}

// makePool creates the streams of a pool with these numbers, or checks that existing ones have
// them.
func (p *Post) makePool(ctx context.Context, name string, shards, streams int) (*streamPool, error) {
	pl := &streamPool{post: p, name: name, within: p.addressPool(name), shards: shards}
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
	return p.keepPool(pl), nil
}

func (p *Post) keepPool(pl *streamPool) *streamPool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.pools[pl.within]; known != nil {
		return known
	}
	p.pools[pl.within] = pl
	return pl
}

// knownPool returns a pool that was opened, by its name in addresses.
func (p *Post) knownPool(within string) *streamPool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pools[within]
}

func (p *Post) openedPools() []*streamPool {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]*streamPool, 0, len(p.pools))
	for _, pl := range p.pools {
		list = append(list, pl)
	}
	slices.SortFunc(list, func(a, b *streamPool) int { return strings.Compare(a.within, b.within) })
	return list
}

// openPool opens a pool by its name in addresses. The streams record how many shards the pool
// has.
func (p *Post) openPool(ctx context.Context, within string) (*streamPool, error) {
	if pl := p.knownPool(within); pl != nil {
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
	return p.makePool(ctx, within, shards, streams)
}

// poolPause is the pause before the next look for a missing pool.
const poolPause = time.Second

// awaitPool returns the pool as soon as it exists.
func (p *Post) awaitPool(ctx context.Context, within string) (*streamPool, error) {
	for {
		pl, err := p.openPool(ctx, within)
		if err == nil {
			return pl, nil
		}
		p.cfg.Logger.Warn("a pool is unreachable; its messages wait", "pool", within, "error", err)
		select {
		case <-time.After(poolPause):
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", mailbox.ErrClosed, context.Cause(ctx))
		case <-p.closing.Done():
			return nil, mailbox.ErrClosed
		}
	}
}

// allPools returns the pools on the server, the base pool first.
func (p *Post) allPools(ctx context.Context) ([]*streamPool, error) {
	if p.cfg.Others {
		list := p.js.StreamNames(ctx, jetstream.WithStreamListSubject(p.cfg.Names.AllBoxes()))
		for name := range list.Name() {
			pool, _, ok := p.cfg.Names.ParseBoxStream(name)
			if !ok {
				continue
			}
			if _, err := p.openPool(ctx, p.addressPool(pool)); err != nil && !errors.Is(err, ErrNoPool) {
				return nil, err
			}
		}
		if err := list.Err(); err != nil {
			return nil, fmt.Errorf("jetstream: list the pools: %w", err)
		}
	}
	return p.openedPools(), nil
}

func (pl *streamPool) streamConfig(n, streams int) jetstream.StreamConfig {
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
		c.Subjects = append(c.Subjects, cfg.Names.ShardSubjects(pl.name, shard))
	}
	return c
}

// openStream returns the n-th stream, which it creates if necessary.
func (pl *streamPool) openStream(ctx context.Context, n, streams int) (jetstream.Stream, error) {
	js, want := pl.post.js, pl.streamConfig(n, streams)
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
	subject, err = pl.post.cfg.Names.BoxSubject(pl.name, shard, at)
	return subject, pl.streams[shard%len(pl.streams)], err
}

// parseSubject parses the subject of a log; ok is false if the subject is not that of a log.
func (pl *streamPool) parseSubject(subject string) (at mailbox.Address, ok bool) {
	name, shard, at, err := pl.post.cfg.Names.ParseBox(subject)
	if err != nil || name != pl.name || shard != mailbox.Shard(at, pl.shards) {
		return "", false
	}
	return at.In(pl.within), true
}
