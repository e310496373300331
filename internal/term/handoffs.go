package term

import (
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
)

// Handoff is the moment at which one agent took over the conversation of another, by a call of that one.
type Handoff struct {
	Giver, Taker, Call string
	At                 string // RFC 3339
}

// handoffsMax is how many handoffs a Tree keeps, the newest.
const handoffsMax = 1000

// addHandoff adds a handoff by its event.
func (t *Tree) addHandoff(e client.Event) {
	d, ok := decodeData[event.AgentHandedOff](e)
	if !ok {
		return
	}
	t.handoffs++
	t.Handoffs = append(t.Handoffs, Handoff{Giver: e.Agent, Taker: string(d.To), Call: d.Call, At: e.TS})
	t.Handoffs = t.Handoffs[max(0, len(t.Handoffs)-handoffsMax):]
}

// DescribeGiven says which agent took over, and when.
func (t *Tree) DescribeGiven(h Handoff) string {
	return t.nameAndID(h.Taker) + " took over at " + h.time()
}

// DescribeTaken says from which agent the taker took over, and when.
func (t *Tree) DescribeTaken(h Handoff) string {
	return "took over from " + t.nameAndID(h.Giver) + " at " + h.time()
}

func (t *Tree) nameAndID(id string) string {
	return CleanLine(t.AgentName(id)) + " (" + CleanLine(id) + ")"
}

func (h Handoff) time() string {
	at, err := time.Parse(time.RFC3339, h.At)
	if err != nil {
		return "an unknown time"
	}
	return at.Local().Format(time.DateTime)
}
