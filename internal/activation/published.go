package activation

import (
	"strconv"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/mailbox"
)

// NewPublished completes an event with the version of its document and its time in Unix milliseconds.
func NewPublished(ms int64, e event.Published) event.Published {
	e.V, e.TS = 1, event.FormatStamp(ms)
	return e
}

// EventsOf makes the events of entry n of a log from the events of its steps.
func EventsOf(at mailbox.Address, parent, node string, n uint64, stamp int64, steps []event.Event) []event.Published {
	if len(steps) == 0 {
		return nil
	}
	entry := string(at.Bare()) + "#" + strconv.FormatUint(n, 10) + "."
	common := NewPublished(stamp, event.Published{Run: at.Run(), Agent: at.Agent(), Parent: parent, Node: node, Seq: n})
	events := make([]event.Published, len(steps))
	for i, e := range steps {
		events[i] = common
		events[i].ID, events[i].Kind, events[i].Turn, events[i].Data = entry+strconv.Itoa(i), e.Kind, e.Turn, e.Data
	}
	return events
}

// Event makes the event of a restart. Its id follows from the claim, so a repeated event has the same one.
func (p PublishRestart) Event(at mailbox.Address, node string) event.Published {
	return NewPublished(p.Stamp, event.Published{ID: string(at.Bare()) + "#restarted." + strconv.FormatUint(p.N, 10),
		Run: at.Run(), Agent: at.Agent(), Parent: p.Parent, Node: node, Kind: event.KindAgentRestarted, Turn: p.Turn, Data: p.Data})
}
