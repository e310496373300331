package jetstream

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// describedStream is a stream that answers, or, without an answer, one that has no leader.
type describedStream struct {
	jetstream.Stream
	info *jetstream.StreamInfo
}

func (s describedStream) Info(ctx context.Context, _ ...jetstream.StreamInfoOpt) (*jetstream.StreamInfo, error) {
	if s.info == nil {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.info, nil
}

// Streams without a leader have an error after one bound for all of them, and the others are described, as are the pools.
func TestInspectDescribesTheStreamsThatAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		post := &Post{pools: &streamPools{cfg: &Config{}, byName: map[string]*streamPool{}}}
		led := &jetstream.StreamInfo{State: jetstream.StreamState{Msgs: 7}}
		for _, name := range []string{"a", "b"} {
			pl := &streamPool{pools: post.pools, name: name, within: name, shards: 4}
			for _, info := range []*jetstream.StreamInfo{nil, led, nil} {
				pl.streams = append(pl.streams, &poolStream{Stream: describedStream{info: info}, pool: pl})
			}
			post.pools.byName[name] = pl
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		list, err := Inspect(ctx, post)
		if took := time.Since(began); err != nil || len(list) != 2 || took != inspectTimeout {
			t.Fatalf("%d pools after %v: %v", len(list), took, err)
		}
		for _, p := range list {
			if p.Shards != 4 || len(p.Streams) != 3 || p.Streams[1].Info != led || p.Streams[1].Err != nil {
				t.Errorf("%+v", p)
			}
			for _, n := range []int{0, 2} {
				if s := p.Streams[n]; s.Info != nil || !errors.Is(s.Err, context.DeadlineExceeded) || s.Name != post.cfg.Names.BoxStream(p.Name, n) {
					t.Errorf("%s: %+v", p.Name, s)
				}
			}
		}
	})
}
