package cluster

import (
	"testing"
	"time"

	"github.com/troupe-run/troupe/internal/cluster/shard"
)

// A node whose heartbeats are missing is not shown like one that lives, until its lease expires and it is not shown.
func TestANodeWithoutHeartbeatsIsSilent(t *testing.T) {
	t.Parallel()
	const ttl = 20 * time.Second
	for _, c := range []struct {
		age     time.Duration
		leaving bool
		want    string
	}{{0, false, "live"}, {ttl / 4, false, "live"}, {ttl / 2, true, "leaving"}, {ttl * 3 / 4, false, "silent"}, {ttl * 3 / 4, true, "silent"}} {
		seen := shard.SeenNode{Node: shard.Node{Leaving: c.leaving}, Came: time.Now().Add(-c.age)}
		if got := describeNode(seen, ttl).State; got != c.want {
			t.Errorf("%s after a heartbeat, leaving %v: %q, want %q", c.age, c.leaving, got, c.want)
		}
	}
}
