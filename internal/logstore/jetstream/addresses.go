package jetstream

import (
	"context"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/mailbox"
)

// countEntries asks the leader how many entries there are under a filter, and for the last sequence
// of the stream.
func (s *poolStream) countEntries(ctx context.Context, filter string) (count, last uint64, err error) {
	last, err = s.countByLog(ctx, filter, func(_ mailbox.Address, n uint64) { count += n })
	return count, last, err
}

// countByLog calls each for the logs that have entries under a filter, with their number.
func (s *poolStream) countByLog(ctx context.Context, filter string, each func(at mailbox.Address, n uint64)) (last uint64, err error) {
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(filter))
	if err != nil {
		return 0, err
	}
	for subject, n := range info.State.Subjects {
		// A message on a subject that is not that of a log is never delivered: a reader that
		// counted it would wait for ever.
		if at, ok := s.pool.parseSubject(subject); ok {
			each(at, n)
		}
	}
	return info.State.LastSeq, nil
}

// Addresses implements mailbox.Post; the addresses are sorted.
func (p *Post) Addresses(ctx context.Context, run string) ([]mailbox.Address, error) {
	filter := p.cfg.Names.AllBoxes()
	if run != "" {
		var err error
		if filter, err = p.cfg.Names.RunSubjects(run); err != nil {
			return nil, fmt.Errorf("jetstream: addresses: %w", err)
		}
	}
	pools, err := p.pools.all(ctx)
	if err != nil {
		return nil, err
	}
	var found []mailbox.Address
	for _, pl := range pools {
		for _, s := range pl.streams {
			some, err := s.listAddresses(ctx, filter)
			if err != nil {
				return nil, fmt.Errorf("jetstream: addresses: %w", err)
			}
			found = append(found, some...)
		}
	}
	slices.Sort(found)
	return found, nil
}

// AddressesIn lists the addresses of some shards of a pool, sorted.
func (p *Post) AddressesIn(ctx context.Context, name string, shards ...int) ([]mailbox.Address, error) {
	pl, err := p.pools.open(ctx, p.pools.addressName(name))
	if err != nil {
		return nil, err
	}
	var found []mailbox.Address
	for n, s := range pl.streams {
		of := slices.DeleteFunc(slices.Clone(shards), func(shard int) bool { return shard%len(pl.streams) != n })
		if len(of) == pl.shardsOf(n) { // all shards of the stream
			of = []int{whole}
		}
		for _, shard := range of {
			filter := p.cfg.Names.AllBoxes()
			if shard != whole {
				filter = p.cfg.Names.ShardSubjects(name, shard)
			}
			some, err := s.listAddresses(ctx, filter)
			if err != nil {
				return nil, fmt.Errorf("jetstream: addresses of pool %s: %w", name, err)
			}
			found = append(found, some...)
		}
	}
	slices.Sort(found)
	return found, nil
}

// shardsOf is how many shards the n-th stream has.
func (pl *streamPool) shardsOf(n int) int {
	return (pl.shards - n + len(pl.streams) - 1) / len(pl.streams)
}

// listAddresses asks the leader of a stream for its logs under a filter.
func (s *poolStream) listAddresses(ctx context.Context, filter string) ([]mailbox.Address, error) {
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(filter))
	if err != nil {
		return nil, err
	}
	var found []mailbox.Address
	for subject := range info.State.Subjects {
		if at, ok := s.pool.parseSubject(subject); ok {
			found = append(found, at)
		}
	}
	return found, nil
}

// Entries implements mailbox.Store.
func (p *Post) Entries(ctx context.Context, run string) (map[mailbox.Address]uint64, error) {
	filter, err := p.cfg.Names.RunSubjects(run)
	if err != nil {
		return nil, fmt.Errorf("jetstream: entries: %w", err)
	}
	pools, err := p.pools.all(ctx)
	if err != nil {
		return nil, err
	}
	counts := map[mailbox.Address]uint64{}
	for _, pl := range pools {
		for _, s := range pl.streams {
			if _, err := s.countByLog(ctx, filter, func(at mailbox.Address, n uint64) { counts[at] += n }); err != nil {
				return nil, fmt.Errorf("jetstream: entries of %s: %w", run, err)
			}
		}
	}
	return counts, nil
}
