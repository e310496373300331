package jetstream

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// PoolStatus describes a pool: its shards, and its streams in the order of their numbers.
type PoolStatus struct {
	Name    string
	Shards  int
	Streams []*jetstream.StreamInfo
}

// Inspect asks the server about the streams of all pools.
func Inspect(ctx context.Context, p *Post) ([]PoolStatus, error) {
	pools, err := p.allPools(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]PoolStatus, len(pools))
	for i, pl := range pools {
		list[i] = PoolStatus{Name: pl.name, Shards: pl.shards}
		for _, s := range pl.streams {
			info, err := s.Info(ctx)
			if err != nil {
				return nil, fmt.Errorf("jetstream: inspect pool %s: %w", pl.name, err)
			}
			list[i].Streams = append(list[i].Streams, info)
		}
	}
	return list, nil
}
