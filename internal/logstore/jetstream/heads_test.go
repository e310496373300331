package jetstream_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/mailbox"
)

// The heads of some shards are those of their logs, whatever lies on subjects
// that are nobody's log.
func TestHeadsOfShards(t *testing.T) {
	_, nc := serveTest(t)
	p := openPost(t, nc, quickConfig())
	want := map[int]map[mailbox.Address]uint64{}
	for i := range 60 {
		at := mailbox.At(fmt.Sprintf("r%d", i%7), fmt.Sprintf("a%d", i%10))
		putEntry(t, p, at, fmt.Sprint(i))
		shard := mailbox.Shard(at, p.Shards())
		if want[shard] == nil {
			want[shard] = map[mailbox.Address]uint64{}
		}
		want[shard][at]++
	}
	for shard := range p.Shards() {
		astray := mailbox.At("astray", "a")
		for i := 0; mailbox.Shard(astray, p.Shards()) == shard; i++ {
			astray = mailbox.At("astray", fmt.Sprintf("a%d", i))
		}
		subject := strings.Replace(names.Names{}.ShardSubjects("default", shard), "*.*", string(astray), 1)
		if _, err := serverAPI(t, nc).Publish(t.Context(), subject, []byte("astray")); err != nil {
			t.Fatal(err)
		}
	}
	for shard := range p.Shards() {
		got := map[mailbox.Address]uint64{}
		err := p.HeadsOf(t.Context(), "default", []int{shard}, func(h mailbox.Head) error {
			if len(h.Data) == 0 {
				t.Errorf("the newest entry of %s is not known", h.To)
			}
			got[h.To] = h.Entries
			return nil
		})
		if err != nil || !maps.Equal(got, want[shard]) {
			t.Errorf("shard %d: %v %v, want %v", shard, err, got, want[shard])
		}
	}
}
