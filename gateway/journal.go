package gateway

import (
	"fmt"
	"strings"
	"time"

	"github.com/troupe-run/troupe/actors/life"
)

// JournalState is the data of journal.unavailable and journal.available: whether a
// node can write the logs that it acts on.
type JournalState struct {
	// WaitedMS is how long the oldest entry waits for its place, or has waited.
	WaitedMS int64 `json:"waited_ms"`
	// Waiting is how many entries do, and Why what the server says of it.
	Waiting int    `json:"waiting,omitempty"`
	Why     string `json:"why,omitempty"`
}

// Journal makes the event of a node whose entries nobody stores, or does again.
func Journal(node string, available bool, s JournalState, at time.Time) life.Event {
	kind := "journal.unavailable"
	if available {
		kind = "journal.available"
	}
	id := strings.ToLower(node)
	return life.Event{V: 1, ID: fmt.Sprintf("%s.%s#%d.%s", ClusterRun, id, at.UnixMilli(), kind), TS: life.Stamp(at.UnixMilli()),
		Run: ClusterRun, Agent: id, Node: node, Kind: kind, Data: s}
}
