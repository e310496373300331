package activation

import (
	"fmt"
	"time"

	"github.com/troupe-run/troupe/mailbox"
)

// Published is one document on `troupe.evt.<run>.<agent>.<kind>`: a note with its place in
// the log. Each republication has the same id.
type Published struct {
	V      int    `json:"v"`
	ID     string `json:"id"` // <address>#<n>.<i>
	TS     string `json:"ts"`
	Run    string `json:"run"`
	Agent  string `json:"agent"`
	Parent string `json:"parent,omitempty"`
	Node   string `json:"node,omitempty"`
	Seq    uint64 `json:"seq"` // the entry's index in its log; 0 for a delta
	Kind   string `json:"kind"`
	Turn   int    `json:"turn,omitempty"`
	Data   any    `json:"data,omitempty"`
}

// Tell makes the events of entry n of a log from the notes of its steps.
func Tell(at mailbox.Address, parent, node string, n uint64, stamp int64, notes []Note) []Published {
	events := make([]Published, len(notes))
	for i, note := range notes {
		events[i] = Published{V: 1, ID: fmt.Sprintf("%s#%d.%d", at.Bare(), n, i), TS: Stamp(stamp), Run: at.Run(), Agent: at.Agent(),
			Parent: parent, Node: node, Seq: n, Kind: note.Kind, Turn: note.Turn, Data: note.Data}
	}
	return events
}

// Stamp formats Unix milliseconds as events show them.
func Stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }
