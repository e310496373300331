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
	for n := range p.streams {
		if err := p.heads(ctx, n, p.cfg.Names.Boxes(), each); err != nil {
			return fmt.Errorf("jetstream: heads: %w", err)
		}
	}
	return nil
}

// HeadsOf is Heads for the logs of some shards.
func (p *Post) HeadsOf(ctx context.Context, shards []int, each func(mailbox.Head) error) error {
	for _, s := range shards {
		if err := p.heads(ctx, s%p.cfg.Streams, p.cfg.Names.BoxShard(p.cfg.Pool, s), each); err != nil {
			return fmt.Errorf("jetstream: heads of shard %d: %w", s, err)
		}
	}
	return nil
}

func (p *Post) heads(ctx context.Context, stream int, filter string, each func(mailbox.Head) error) error {
	end, err := p.lastOf(ctx, stream, filter)
	if err == nil && end == 0 {
		end, err = p.endOfWhatIsThere(ctx, stream, filter)
	}
	if err != nil || end == 0 {
		return err
	}
	newest := map[mailbox.Address]mailbox.Message{}
	f := p.follow(stream, []string{filter}, 1, func(m mailbox.Message) bool {
		newest[m.To] = m
		return m.Place < end
	})
	f.newest = true
	err = f.run(ctx, func(ctx context.Context) bool {
		if f.first() > end { // the last subject is nobody's log
			return true
		}
		last, err := p.lastOf(ctx, stream, filter)
		return err == nil && last < end && f.drained(ctx) // it was purged, or is rotten
	})
	if err != nil {
		return err
	}
	info, err := p.streams[stream].Info(ctx, jetstream.WithSubjectFilter(filter))
	if err != nil {
		return err
	}
	for subject, n := range info.State.Subjects {
		_, shard, at, err := p.cfg.Names.ParseBox(subject)
		if err != nil || shard != mailbox.Shard(at, p.cfg.Shards) {
			continue // nobody's log
		}
		h := mailbox.Head{Message: newest[at], Entries: n}
		h.To = at
		if err := each(h); err != nil {
			return err
		}
	}
	return nil
}

// endOfWhatIsThere is the end of a stream that holds entries under a filter, though
// the leader finds no last one: that one is rotten. 0: there are none.
func (p *Post) endOfWhatIsThere(ctx context.Context, stream int, filter string) (uint64, error) {
	count, end, err := p.count(ctx, stream, filter)
	if err != nil || count == 0 {
		return 0, err
	}
	return end, nil
}

// first is the place of the first message not yet delivered.
func (f *follower) first() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.next
}
