package life

import (
	"fmt"
	"time"

	"github.com/troupe-run/troupe/mailbox"
)

// Event is one document on `troupe.evt.<run>.<agent>.<kind>`: a note with its
// place. Its id is the same whenever it is told again.
type Event struct {
	V      int    `json:"v"`
	ID     string `json:"id"` // <address>#<n>.<i>
	TS     string `json:"ts"`
	Run    string `json:"run"`
	Agent  string `json:"agent"`
	Parent string `json:"parent,omitempty"`
	Node   string `json:"node,omitempty"`
	Seq    uint64 `json:"seq"` // the entry's ordinal in its log; 0 for a delta
	Kind   string `json:"kind"`
	Turn   int    `json:"turn,omitempty"`
	Data   any    `json:"data,omitempty"`
}

// Tell makes the events of entry n of a log from the notes of its steps.
func Tell(at mailbox.Address, parent, node string, n uint64, stamp int64, notes []Note) []Event {
	events := make([]Event, len(notes))
	for i, note := range notes {
		events[i] = Event{V: 1, ID: fmt.Sprintf("%s#%d.%d", at.Bare(), n, i), TS: Stamp(stamp), Run: at.Run(), Agent: at.Agent(),
			Parent: parent, Node: node, Seq: n, Kind: note.Kind, Turn: note.Turn, Data: note.Data}
	}
	return events
}

// Stamp formats Unix milliseconds as events show them.
func Stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }
