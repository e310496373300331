package verify

import (
	"slices"

	"github.com/troupe-run/troupe/mailbox"
)

// message is an item of another actor.
type message struct {
	entry uint64
	from  mailbox.Address
	n     uint64
	i     int
	kind  string
	body  []byte
}

// inbox holds the messages of other actors in a log, in its order. That of a run says which agents have ended, and who
// waits for a person.
type inbox []message

// endsOf returns the messages that say how an agent has ended.
func (b inbox) endsOf(agent string) (ends []message) {
	for _, m := range b {
		if m.from.Agent() == agent && m.kind == "finish" {
			ends = append(ends, m)
		}
	}
	return ends
}

// openQuestions returns the questions that no agent has withdrawn, in the order in which they were asked.
func (b inbox) openQuestions() (open []question) {
	for _, m := range b {
		switch m.kind {
		case "park":
			var body parkBody
			if mailbox.Unmarshal(m.body, &body) == nil {
				open = append(open, question{m.entry, m.n, m.from, body})
			}
		case "unpark":
			var body parkBody
			if mailbox.Unmarshal(m.body, &body) == nil {
				open = slices.DeleteFunc(open, func(q question) bool { return q.from == m.from && q.body.Query == body.Query })
			}
		case "finish":
			open = slices.DeleteFunc(open, func(q question) bool { return q.from == m.from })
		}
	}
	return open
}
