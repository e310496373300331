package term

import (
	"fmt"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
)

// describeShard says which shard a node took or released, and why.
func describeShard(e client.Event) (string, bool) {
	d, ok := decodeData[event.ShardMoved](e)
	text := fmt.Sprintf("%s.%d %s", d.Pool, d.Shard, d.Why)
	switch {
	case d.Other != "" && e.Kind == event.KindShardTaken:
		text += ", from " + d.Other
	case d.Other != "":
		text += ", to " + d.Other
	}
	return text, ok
}
