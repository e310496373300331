package jetstream

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// inspectTimeout bounds the request about one stream: one without a leader never answers.
const inspectTimeout = 2 * time.Second

// PoolStatus describes a pool: its shards, and its streams in the order of their numbers.
type PoolStatus struct {
	Name    string
	Shards  int
	Streams []StreamStatus
}

// StreamStatus is what the server says of a stream, or why it does not.
type StreamStatus struct {
	Name string
	Info *jetstream.StreamInfo // nil if Err is set
	Err  error
}

// Inspect asks the server about the streams of all pools, all at once. A stream that does not answer within inspectTimeout
// has an error, and the others are described. If the pools cannot be listed, it returns the known ones and the error.
func Inspect(ctx context.Context, p *Post) ([]PoolStatus, error) {
	listing, cancel := context.WithTimeout(ctx, inspectTimeout)
	pools, err := p.pools.all(listing)
	cancel()
	if err != nil {
		pools, err = p.pools.opened(), fmt.Errorf("jetstream: inspect: %w", err)
	}
	list := make([]PoolStatus, len(pools))
	var asked sync.WaitGroup
	for i, pl := range pools {
		list[i] = PoolStatus{Name: pl.name, Shards: pl.shards, Streams: make([]StreamStatus, len(pl.streams))}
		for n, s := range pl.streams {
			asked.Go(func() { list[i].Streams[n] = s.inspect(ctx, p.cfg.Names.BoxStream(pl.name, n)) })
		}
	}
	asked.Wait()
	return list, err
}

// inspect asks the server about the stream.
func (s *poolStream) inspect(ctx context.Context, name string) StreamStatus {
	ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	info, err := s.Info(ctx)
	if err != nil {
		return StreamStatus{Name: name, Err: fmt.Errorf("jetstream: inspect %s: %w", name, err)}
	}
	return StreamStatus{Name: name, Info: info}
}
