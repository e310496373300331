// Package jetstream is the durable mailbox.Post: one subject per address in a small number of
// JetStream streams.
//
// Stream n holds the shards s with s mod streams = n, so that a node that owns all shards
// reads with one consumer per stream. To append is to publish and wait for the store's
// acknowledgement; a read that must be up to date never goes to a follower.
package jetstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/mailbox"
)

// Defaults of Config.
const (
	DefaultShards     = 64
	DefaultStreams    = 8
	defaultBytesMax   = bus.DefaultLogBytesMax
	defaultRetryAfter = 5 * time.Second
	defaultHeartbeat  = 2 * time.Second
)

// apiTimeout ends one request to the JetStream API.
const apiTimeout = 10 * time.Second

// ErrLayout says that a stream exists with settings under which these logs would be lost,
// misplaced or read stale. The message names the setting and the remedy.
var ErrLayout = errors.New("jetstream: stream does not fit")

// Config configures a Post.
type Config struct {
	// APIPrefix is the prefix of the JetStream API, as in "$JS.hub.API". Default: the usual
	// one.
	APIPrefix string
	// BytesMax is the most bytes of all streams of the pool together. It applies only when
	// they are created. Default 2 GiB.
	BytesMax int64
	// Heartbeat is how often the server confirms to an idle reader that it is still attached;
	// a reader that receives none for two intervals attaches again. Default 2 s.
	Heartbeat time.Duration
	// Logger receives a line when a reader has to attach again and when an append has to be
	// sent again. Default: discard.
	Logger *slog.Logger
	// Names builds the subjects. Default: prefix "troupe".
	Names names.Names
	// Pool is the pool of addresses that name none. Default "default".
	Pool string
	// Others says that there may be other pools on the server: then lists of logs, and of
	// runs, include those pools.
	Others bool
	// Reader is a second connection for readers, so that their messages do not delay
	// acknowledgements. Default: the connection of Open.
	Reader *nats.Conn
	// Replicas of the streams, when they are made. Default 1.
	Replicas int
	// RetryAfter is how long an append waits for an acknowledgement before the
	// same bytes are sent again. Default 5 s.
	RetryAfter time.Duration
	// Stalled is called once when an append has waited for StallAfter (default
	// 5 s), or when appends were refused for want of room for that long, and
	// once when neither is the case any more. It must not block. Default: no calls.
	Stalled    func(mailbox.Stall)
	StallAfter time.Duration
	// Shards and Streams are fixed for the life of a pool. Default 64 and 8.
	Shards, Streams int
}

func (c *Config) fillDefaults(nc *nats.Conn) error {
	if c.APIPrefix == "" {
		c.APIPrefix = jetstream.DefaultAPIPrefix
	}
	if c.APIPrefix[len(c.APIPrefix)-1] != '.' {
		c.APIPrefix += "."
	}
	if c.BytesMax == 0 {
		c.BytesMax = defaultBytesMax
	}
	if c.Heartbeat == 0 {
		c.Heartbeat = defaultHeartbeat
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Pool == "" {
		c.Pool = names.DefaultPool
	}
	if c.Reader == nil {
		c.Reader = nc
	}
	if c.Replicas == 0 {
		c.Replicas = 1
	}
	if c.RetryAfter == 0 {
		c.RetryAfter = defaultRetryAfter
	}
	if c.StallAfter == 0 {
		c.StallAfter = defaultStallAfter
	}
	if c.Shards == 0 && c.Streams == 0 {
		c.Shards, c.Streams = DefaultShards, DefaultStreams
	}
	if c.Shards < 1 || c.Streams < 1 || c.Streams > c.Shards {
		return fmt.Errorf("jetstream: %d shards in %d streams", c.Shards, c.Streams)
	}
	return names.CheckToken(c.Pool)
}

// Post implements mailbox.Store.
type Post struct {
	cfg     Config
	pools   *streamPools
	base    *streamPool
	out     *appender
	readers *readers

	// closing is done when Close begins: it ends what Close must wait for.
	closing context.Context
	close   context.CancelFunc
	running sync.WaitGroup
	mu      sync.Mutex // nothing begins to run after Close has begun
}

var _ mailbox.Store = (*Post)(nil)

// Open creates the streams of a pool or checks those that exist, and returns a Post on them.
// The caller keeps the connection, which must outlive the Post.
func Open(ctx context.Context, nc *nats.Conn, cfg Config) (*Post, error) {
	if err := cfg.fillDefaults(nc); err != nil {
		return nil, err
	}
	// Everything but appends uses the connection of the reader: one connection must not
	// request a consumer before the other has subscribed.
	js, err := jetstream.NewWithAPIPrefix(cfg.Reader, cfg.APIPrefix)
	if err != nil {
		return nil, fmt.Errorf("jetstream: open: %w", err)
	}
	account, err := js.AccountInfo(ctx)
	if err != nil {
		return nil, fmt.Errorf("jetstream: open: domain of the server: %w", err)
	}
	p := &Post{cfg: cfg}
	p.closing, p.close = context.WithCancel(context.Background())
	p.readers = &readers{cfg: &p.cfg, closing: p.closing, attached: map[*follower]struct{}{}}
	p.pools = &streamPools{cfg: &p.cfg, js: js, domain: account.Domain, readers: p.readers, byName: map[string]*streamPool{}}
	if p.base, err = p.pools.create(ctx, cfg.Pool, cfg.Shards, cfg.Streams); err != nil {
		p.close()
		return nil, err
	}
	p.out, err = newAppender(nc, &p.cfg)
	if err != nil {
		p.close()
		return nil, fmt.Errorf("jetstream: open: %w", err)
	}
	p.watchConnection(nc)
	return p, nil
}

// Close implements mailbox.Store. Readers end too.
func (p *Post) Close() error {
	p.mu.Lock()
	p.close()
	p.mu.Unlock()
	p.running.Wait()
	return p.out.close()
}

// watchConnection makes appends and readers continue as soon as a connection is back, instead of after
// their timeouts.
func (p *Post) watchConnection(nc *nats.Conn) {
	back := nc.StatusChanged(nats.CONNECTED)
	reader := p.cfg.Reader.StatusChanged(nats.CONNECTED)
	p.running.Go(func() {
		defer nc.RemoveStatusListener(back)
		defer p.cfg.Reader.RemoveStatusListener(reader)
		for {
			select {
			case _, open := <-back:
				if !open {
					return
				}
				p.out.resendAll()
			case _, open := <-reader:
				if !open {
					return
				}
				p.readers.reattach("reconnected")
			case <-p.closing.Done():
				return
			}
		}
	})
}

// creationError adds the remedy to the error of a stream that could not be created.
func creationError(name string, err error) error {
	var api *jetstream.APIError
	if errors.As(err, &api) && (api.ErrorCode == codeNoStorage || api.ErrorCode == codeNoResources) {
		return fmt.Errorf("stream %s: %w: the server has less storage than the streams reserve; lower the retention size or give JetStream more: %w", name, mailbox.ErrFull, err)
	}
	return fmt.Errorf("stream %s: %w", name, err)
}

// checkSettings checks that an existing stream has the required settings.
func checkSettings(want, got jetstream.StreamConfig) error {
	for _, key := range []string{names.MetaShards, names.MetaStreams} {
		if got.Metadata[key] != want.Metadata[key] {
			return fmt.Errorf("%w: %s was made with %s=%q, this node has %q: the numbers are fixed for the life of a pool, so start the node with the old ones, or use another pool",
				ErrLayout, want.Name, key, got.Metadata[key], want.Metadata[key])
		}
	}
	wrong := ""
	switch {
	case !sameSubjects(want.Subjects, got.Subjects):
		wrong = fmt.Sprintf("holds %s, and this node puts its logs at %s: another prefix, or other hands were at it", strings.Join(got.Subjects, " "), strings.Join(want.Subjects, " "))
	case !got.DenyDelete:
		wrong = "lets entries be deleted (needs: deny delete)"
	case got.Storage != want.Storage:
		wrong = "is not stored in files"
	case got.Discard != want.Discard:
		wrong = "drops old messages when it is full (needs: discard new)"
	case got.AllowDirect:
		wrong = "allows direct reads, which may be stale (nats stream edit --no-allow-direct)"
	case got.MaxMsgSize > 0 && got.MaxMsgSize < want.MaxMsgSize:
		wrong = fmt.Sprintf("takes messages of %d bytes only (needs: %d)", got.MaxMsgSize, want.MaxMsgSize)
	case got.Retention != want.Retention:
		wrong = "removes messages that were read (needs: limits)"
	case got.MaxAge != 0 || got.MaxMsgs > 0 || got.MaxMsgsPerSubject > 0:
		wrong = "removes messages by age or number; retention is troupe's own"
	case got.Replicas < want.Replicas:
		wrong = fmt.Sprintf("has %d replicas, %d were asked for (nats stream edit --replicas=%d)", got.Replicas, want.Replicas, want.Replicas)
	}
	if wrong != "" {
		return fmt.Errorf("%w: %s %s", ErrLayout, want.Name, wrong)
	}
	return nil
}

func sameSubjects(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// Shards is the number of shards of the base pool.
func (p *Post) Shards() int { return p.base.shards }

// Streams is the number of streams of the base pool.
func (p *Post) Streams() int { return len(p.base.streams) }

// Append implements mailbox.Post. Order against an earlier Append to the same address is
// guaranteed only after the earlier one's done. An append to a pool that does not exist waits
// for it, as for a stream without a leader.
func (p *Post) Append(ctx context.Context, to mailbox.Address, data []byte, done func(place uint64, err error)) {
	if pl := p.pools.known(to.Pool()); pl != nil {
		p.appendTo(ctx, pl, to, data, done)
		return
	}
	if err := names.CheckToken(to.Pool()); err != nil {
		done(0, fmt.Errorf("jetstream: append: %w", err))
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing.Err() != nil {
		go done(0, mailbox.ErrClosed)
		return
	}
	p.running.Go(func() {
		pl, err := p.pools.await(ctx, to.Pool())
		if err != nil {
			done(0, fmt.Errorf("jetstream: append to %s: %w", to, err))
			return
		}
		p.appendTo(ctx, pl, to, data, done)
	})
}

func (p *Post) appendTo(ctx context.Context, pl *streamPool, to mailbox.Address, data []byte, done func(place uint64, err error)) {
	subject, s, err := pl.homeOf(to)
	if err != nil {
		done(0, fmt.Errorf("jetstream: append: %w", err))
		return
	}
	p.out.queueAppend(ctx, &s.acks, subject, data, done)
}

// Stored returns how many bytes the streams of all pools hold together. inFullest reports whether a log is in the
// fullest stream: only the removal of such a log changes what Room returns.
func (p *Post) Stored(ctx context.Context) (sum uint64, inFullest func(mailbox.Address) bool, err error) {
	pools, err := p.pools.all(ctx)
	if err != nil {
		return 0, nil, err
	}
	var fullest *poolStream
	share := -1.0
	for _, pl := range pools {
		for _, s := range pl.streams {
			info, err := s.Info(ctx)
			if err != nil {
				return 0, nil, fmt.Errorf("jetstream: stored bytes: %w", err)
			}
			sum += info.State.Bytes
			if of := float64(info.State.Bytes) / float64(max(info.Config.MaxBytes, 1)); info.Config.MaxBytes > 0 && of > share {
				fullest, share = s, of
			}
		}
	}
	return sum, func(at mailbox.Address) bool {
		pl := p.pools.known(at.Pool())
		if pl == nil || fullest == nil {
			return false
		}
		_, s, err := pl.homeOf(at)
		return err == nil && s == fullest
	}, nil
}

// Room implements mailbox.Store: it returns the figures of the fullest stream.
func (p *Post) Room(ctx context.Context) (used, most uint64, err error) {
	for _, pl := range p.pools.opened() {
		for _, s := range pl.streams {
			info, err := s.Info(ctx)
			if err != nil {
				return 0, 0, fmt.Errorf("jetstream: room: %w", err)
			}
			limit := uint64(max(info.Config.MaxBytes, 0))
			if most == 0 || limit > 0 && float64(info.State.Bytes)/float64(limit) > float64(used)/float64(most) {
				used, most = info.State.Bytes, limit
			}
		}
	}
	return used, most, nil
}
