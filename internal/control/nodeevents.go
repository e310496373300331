package control

import (
	"fmt"
	"strings"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/internal/activation"
)

// ClusterRun takes the place of the run ID in events of nodes.
const ClusterRun = "_cluster"

// ShardMovedEvent returns the event of a shard that a node took or released.
func ShardMovedEvent(node, name string, taken bool, m event.ShardMoved, at time.Time) event.Published {
	kind := event.KindShardReleased
	if taken {
		kind = event.KindShardTaken
	}
	id := strings.ToLower(node)
	return activation.NewPublished(at.UnixMilli(), event.Published{ID: fmt.Sprintf("%s.%s#%s.%d.%d.%s", ClusterRun, id, m.Pool, m.Shard, m.Epoch, kind),
		Run: ClusterRun, Agent: id, Node: name, Kind: kind, Data: m})
}

// ShardUnreadableEvent returns the event of a shard that a node holds and cannot read, or can read
// again.
func ShardUnreadableEvent(node, name string, is bool, u event.ShardUnreadable, at time.Time) event.Published {
	kind := event.KindShardReadable
	if is {
		kind = event.KindShardUnreadable
	}
	id := strings.ToLower(node)
	return activation.NewPublished(at.UnixMilli(), event.Published{ID: fmt.Sprintf("%s.%s#%s.%d.%d.%s", ClusterRun, id, u.Pool, u.Shard, at.UnixMilli(), kind),
		Run: ClusterRun, Agent: id, Node: name, Kind: kind, Data: u})
}

// RunReconciledEvent returns the event of a sweep for runs that no node owned.
func RunReconciledEvent(node, name string, r event.RunReconciled, at time.Time) event.Published {
	id := strings.ToLower(node)
	return activation.NewPublished(at.UnixMilli(), event.Published{ID: fmt.Sprintf("%s.%s#%d.%s", ClusterRun, id, at.UnixMilli(), event.KindRunReconciled),
		Run: ClusterRun, Agent: id, Node: name, Kind: event.KindRunReconciled, Data: r})
}
