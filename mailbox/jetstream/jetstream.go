// Package jetstream is the durable mailbox.Post: one subject per address in a
// small number of JetStream streams.
//
// Stream n holds the shards s with s mod streams = n, so that a node that owns
// all shards reads with one consumer per stream. To append is to publish and
// wait for the store's acknowledgement; nothing is read from a follower where
// an answer must be the truth.
package jetstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/bus"
	"github.com/troupe-run/troupe/mailbox"
)

// Defaults of Config.
const (
	DefaultShards     = 64
	DefaultStreams    = 8
	DefaultBytesMax   = bus.DefaultLogBytesMax
	DefaultRetryAfter = 5 * time.Second
	DefaultHeartbeat  = 2 * time.Second
)

// apiTimeout ends one request to the JetStream API.
const apiTimeout = 10 * time.Second

// ErrLayout: a stream exists with settings under which these logs would be
// lost, misplaced or read stale. The message says which and what to do.
var ErrLayout = errors.New("jetstream: stream does not fit")

// Config is how a Post is opened.
type Config struct {
	// APIPrefix is that of the JetStream API, as in "$JS.hub.API". Default: the usual one.
	APIPrefix string
	// BytesMax is the most bytes of all streams of the pool together. It only
	// counts when they are made. Default 2 GiB.
	BytesMax int64
	// Heartbeat is how often an idle reader is told that it is still attached;
	// a reader that hears nothing for two of them attaches anew. Default 2 s.
	Heartbeat time.Duration
	// Logger hears of readers that had to attach anew and of appends that had
	// to be sent again. Default: discard.
	Logger *slog.Logger
	// Names builds the subjects. Default: prefix "troupe".
	Names bus.Names
	// Pool is whose logs these are. Default "default".
	Pool string
	// Reader is a second connection for readers, so that what they get does
	// not queue before acknowledgements. Default: the connection of Open.
	Reader *nats.Conn
	// Replicas of the streams, when they are made. Default 1.
	Replicas int
	// RetryAfter is how long an append waits for an acknowledgement before the
	// same bytes are sent again. Default 5 s.
	RetryAfter time.Duration
	// Shards and Streams are fixed for the life of a pool. Default 64 and 8.
	Shards, Streams int
}

func (c *Config) fill(nc *nats.Conn) error {
	if c.APIPrefix == "" {
		c.APIPrefix = jetstream.DefaultAPIPrefix
	}
	if c.APIPrefix[len(c.APIPrefix)-1] != '.' {
		c.APIPrefix += "."
	}
	if c.BytesMax == 0 {
		c.BytesMax = DefaultBytesMax
	}
	if c.Heartbeat == 0 {
		c.Heartbeat = DefaultHeartbeat
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Pool == "" {
		c.Pool = bus.DefaultPool
	}
	if c.Reader == nil {
		c.Reader = nc
	}
	if c.Replicas == 0 {
		c.Replicas = 1
	}
	if c.RetryAfter == 0 {
		c.RetryAfter = DefaultRetryAfter
	}
	if c.Shards == 0 && c.Streams == 0 {
		c.Shards, c.Streams = DefaultShards, DefaultStreams
	}
	if c.Shards < 1 || c.Streams < 1 || c.Streams > c.Shards {
		return fmt.Errorf("jetstream: %d shards in %d streams", c.Shards, c.Streams)
	}
	return bus.Token(c.Pool)
}

// Post implements mailbox.Store.
type Post struct {
	cfg     Config
	js      jetstream.JetStream
	streams []jetstream.Stream
	out     *appender

	// closing ends what Close must wait for.
	closing context.Context
	close   context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	readers map[*follower]struct{}
}

var _ mailbox.Store = (*Post)(nil)

// Open makes the streams of a pool or checks those that are there, and returns
// a Post over them. The connection stays the caller's and must outlive the Post.
func Open(ctx context.Context, nc *nats.Conn, cfg Config) (*Post, error) {
	if err := cfg.fill(nc); err != nil {
		return nil, err
	}
	// Everything but appends is the reader's: a consumer must not be asked for
	// on one connection before the other has said that it listens.
	js, err := jetstream.NewWithAPIPrefix(cfg.Reader, cfg.APIPrefix)
	if err != nil {
		return nil, fmt.Errorf("jetstream: open: %w", err)
	}
	p := &Post{cfg: cfg, js: js, readers: map[*follower]struct{}{}}
	for n := range cfg.Streams {
		s, err := p.stream(ctx, n)
		if err != nil {
			return nil, fmt.Errorf("jetstream: open pool %s: %w", cfg.Pool, err)
		}
		p.streams = append(p.streams, s)
	}
	p.out, err = newAppender(nc, &p.cfg)
	if err != nil {
		return nil, fmt.Errorf("jetstream: open: %w", err)
	}
	p.closing, p.close = context.WithCancel(context.Background())
	p.watch(nc)
	return p, nil
}

// Close implements mailbox.Store. Readers end too.
func (p *Post) Close() error {
	p.close()
	p.running.Wait()
	return p.out.close()
}

// watch makes appends and readers go on at once when a connection is back,
// instead of after their timeouts.
func (p *Post) watch(nc *nats.Conn) {
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
				p.out.again()
			case _, open := <-reader:
				if !open {
					return
				}
				p.mu.Lock()
				for f := range p.readers {
					f.breaks("reconnected")
				}
				p.mu.Unlock()
			case <-p.closing.Done():
				return
			}
		}
	})
}

func (p *Post) config(n int) jetstream.StreamConfig {
	c := jetstream.StreamConfig{
		Name:        p.cfg.Names.BoxStream(p.cfg.Pool, n),
		Description: "troupe mailboxes: the logs of actors; only nodes may write",
		Storage:     jetstream.FileStorage,
		Discard:     jetstream.DiscardNew,
		MaxMsgSize:  mailbox.EntryBytesMax,
		MaxBytes:    p.cfg.BytesMax / int64(p.cfg.Streams),
		DenyDelete:  true,
		Replicas:    p.cfg.Replicas,
		Metadata: map[string]string{
			bus.MetaShards:  strconv.Itoa(p.cfg.Shards),
			bus.MetaStreams: strconv.Itoa(p.cfg.Streams),
		},
	}
	for shard := n; shard < p.cfg.Shards; shard += p.cfg.Streams {
		c.Subjects = append(c.Subjects, p.cfg.Names.BoxShard(p.cfg.Pool, shard))
	}
	return c
}

// stream returns the n-th stream, made if it is not there.
func (p *Post) stream(ctx context.Context, n int) (jetstream.Stream, error) {
	want := p.config(n)
	s, err := p.js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		s, err = p.js.CreateStream(ctx, want)
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			s, err = p.js.Stream(ctx, want.Name)
		}
	}
	if err != nil {
		return nil, refusal(want.Name, err)
	}
	return s, fits(want, s.CachedInfo().Config)
}

// refusal says what to do about a stream that could not be made.
func refusal(name string, err error) error {
	var api *jetstream.APIError
	if errors.As(err, &api) && (api.ErrorCode == codeNoStorage || api.ErrorCode == codeNoResources) {
		return fmt.Errorf("stream %s: %w: the server has less storage than the streams reserve; lower the retention size or give JetStream more: %w", name, mailbox.ErrFull, err)
	}
	return fmt.Errorf("stream %s: %w", name, err)
}

// fits compares a stream that exists with what is needed.
func fits(want, got jetstream.StreamConfig) error {
	for _, key := range []string{bus.MetaShards, bus.MetaStreams} {
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

// home is where an address lives.
func (p *Post) home(at mailbox.Address) (subject string, stream int, err error) {
	shard := mailbox.Shard(at, p.cfg.Shards)
	subject, err = p.cfg.Names.Box(p.cfg.Pool, shard, at)
	return subject, shard % p.cfg.Streams, err
}

// Shards is the number of shards of the pool.
func (p *Post) Shards() int { return p.cfg.Shards }

// Streams is the number of streams of the pool.
func (p *Post) Streams() int { return p.cfg.Streams }

// Append implements mailbox.Post. Order against an earlier Append to the same
// address is promised only after the earlier one's done.
func (p *Post) Append(ctx context.Context, to mailbox.Address, data []byte, done func(place uint64, err error)) {
	subject, _, err := p.home(to)
	if err != nil {
		done(0, fmt.Errorf("jetstream: append: %w", err))
		return
	}
	p.out.append(ctx, subject, data, done)
}

// Room implements mailbox.Store: the figures of the fullest stream.
func (p *Post) Room(ctx context.Context) (used, most uint64, err error) {
	for _, s := range p.streams {
		info, err := s.Info(ctx)
		if err != nil {
			return 0, 0, fmt.Errorf("jetstream: room: %w", err)
		}
		limit := uint64(max(info.Config.MaxBytes, 0))
		if most == 0 || limit > 0 && float64(info.State.Bytes)/float64(limit) > float64(used)/float64(most) {
			used, most = info.State.Bytes, limit
		}
	}
	return used, most, nil
}
