package activation

import (
	"fmt"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/mailbox"
)

// EventsOf makes the events of entry n of a log from the notes of its steps.
func EventsOf(at mailbox.Address, parent, node string, n uint64, stamp int64, notes []Note) []event.Published {
	events := make([]event.Published, len(notes))
	for i, note := range notes {
		events[i] = event.Published{V: 1, ID: fmt.Sprintf("%s#%d.%d", at.Bare(), n, i), TS: event.FormatStamp(stamp), Run: at.Run(), Agent: at.Agent(),
			Parent: parent, Node: node, Seq: n, Kind: note.Kind, Turn: note.Turn, Data: note.Data}
	}
	return events
}
