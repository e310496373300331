package jetstream

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/mailbox"
)

// Heads implements mailbox.Store: one consumer per stream that delivers the
// newest entry of each subject, and the leader's count of subjects after it.
func (p *Post) Heads(ctx context.Context, each func(mailbox.Head) error) error {
	pools, err := p.pools.all(ctx)
	if err != nil {
		return err
	}
	for _, pl := range pools {
		for _, s := range pl.streams {
			if err := s.eachHead(ctx, p.cfg.Names.AllBoxes(), each); err != nil {
				return fmt.Errorf("jetstream: heads: %w", err)
			}
		}
	}
	return nil
}

// HeadsOf is Heads for the logs of some shards of a pool.
func (p *Post) HeadsOf(ctx context.Context, name string, shards []int, each func(mailbox.Head) error) error {
	pl, err := p.pools.open(ctx, p.pools.addressName(name))
	if err != nil {
		return err
	}
	for _, s := range shards {
		if err := pl.streams[s%len(pl.streams)].eachHead(ctx, p.cfg.Names.ShardSubjects(name, s), each); err != nil {
			return fmt.Errorf("jetstream: heads of shard %d of pool %s: %w", s, name, err)
		}
	}
	return nil
}

func (s *poolStream) eachHead(ctx context.Context, filter string, each func(mailbox.Head) error) error {
	end, err := s.lastOf(ctx, filter)
	if err == nil && end == 0 {
		end, err = s.endOfWhatIsThere(ctx, filter)
	}
	if err != nil || end == 0 {
		return err
	}
	newest := map[mailbox.Address]mailbox.Message{}
	f := s.follow([]string{filter}, 1, func(m mailbox.Message) bool {
		newest[m.To] = m
		return m.Place < end
	})
	f.newest = true
	err = f.runUntil(ctx, func(ctx context.Context) bool {
		if f.firstPlace() > end { // the last subject is not that of a log
			return true
		}
		last, err := s.lastOf(ctx, filter)
		return err == nil && last < end && f.checkDrained(ctx) // the last entry was purged, or is corrupt
	})
	if err != nil {
		return err
	}
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(filter))
	if err != nil {
		return err
	}
	for subject, n := range info.State.Subjects {
		at, ok := s.pool.parseSubject(subject)
		if !ok {
			continue // not the subject of a log
		}
		h := mailbox.Head{Message: newest[at], Entries: n}
		h.To = at
		if err := each(h); err != nil {
			return err
		}
	}
	return nil
}

// endOfWhatIsThere returns the end of a stream that holds entries under a filter, although
// the leader finds no last one, because that one is corrupt. 0: there are no entries.
func (s *poolStream) endOfWhatIsThere(ctx context.Context, filter string) (uint64, error) {
	count, end, err := s.countEntries(ctx, filter)
	if err != nil || count == 0 {
		return 0, err
	}
	return end, nil
}

// firstPlace is the place of the first message not yet delivered.
func (f *follower) firstPlace() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.next
}
