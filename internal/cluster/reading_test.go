package cluster

import (
	"slices"
	"testing"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/cluster/shard"
	"github.com/troupe-run/troupe/internal/logstore/jetstream"
	"github.com/troupe-run/troupe/mailbox"
)

// TestShardsOfASecondStartAreRead: a node that finds no leader when it begins to hold shards begins again. The shards that it
// then gains wake the readers of the second start. Otherwise it holds leases and reads nothing: its runs stand still, and no
// other node takes them over.
//
//behaviour:shows F2
func TestShardsOfASecondStartAreRead(t *testing.T) {
	t.Parallel()
	server, err := embedded.Start(embedded.Config{StateDir: t.TempDir(), Port: embedded.FreePort, Lazy: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	nc, err := server.Connect(bus.RoleNode)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	post, err := jetstream.Open(t.Context(), nc, jetstream.Config{Shards: 4, Streams: 2})
	if err != nil {
		t.Fatal(err)
	}
	part, err := post.Part(t.Context(), "default", func(mailbox.Message) {})
	if err != nil {
		t.Fatal(err)
	}
	defer part.Close()
	reading := newReadSet(poolList{shard.Pool{Name: "default", Shards: 4}})
	reading.tails.Store(&[]*jetstream.Part{part})
	reading.groupByStream() // of a start that failed
	followed := reading.groupByStream()
	streamReader{&Owner{reading: reading}}.applyLeases([]int{3}, nil)
	if !slices.ContainsFunc(followed, func(l *streamShards) bool { return len(l.wakeup) == 1 && slices.Equal(l.gained, []int{3}) }) {
		t.Error("no reader learns of the shard that was gained")
	}
}
