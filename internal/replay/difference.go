package replay

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// Difference is a decision of this version that is not the recorded one.
type Difference struct {
	Log   mailbox.Address `json:"log"`
	Entry uint64          `json:"entry"` // whose decision differs
	// State is what the machine knew before the entry, in one line.
	State    string `json:"state"`
	Recorded string `json:"recorded"`
	New      string `json:"new"`

	stamp mailbox.Stamp
}

func (d *Difference) Error() string {
	return fmt.Sprintf("replay: entry %d of %s: recorded is %s, this version decides %s", d.Entry, d.Log, d.Recorded, d.New)
}

const nothing = "nothing"

// Bytes of the texts of a difference.
const (
	differenceBytes = 400
	beforeBytes     = 120 // shown before the first byte that differs
)

// compareMessages compares the recorded messages with the decided ones, after all logs were read.
func (r *replayer) compareMessages() {
	damaged := r.isDamaged()
	over := false
	for _, l := range r.order {
		over = over || l.super != nil && l.isClosed()
	}
	for _, l := range r.order {
		for _, m := range l.inbox {
			r.compareRecorded(l, m, damaged, over)
		}
	}
	if damaged {
		return
	}
	for _, l := range r.order {
		r.findUnsent(l, over)
	}
}

// compareRecorded compares a message in the log of its receiver with the decision of its sender.
func (r *replayer) compareRecorded(to *replayedLog, m recordedMessage, damaged, over bool) {
	if !to.counted[countedItem{m.at, m.kind}] {
		return // read before, or the sender may not send it: it decided nothing
	}
	from := r.logs[m.from]
	if from == nil || m.id.n > from.reader.N {
		r.run.Unchecked++
		if over && !damaged { // all logs were complete before they were read
			to.addDifference(m.at, describeMessage(m.kind, m.body), fmt.Sprintf("%s: the log of %s has no entry %d", nothing, m.from, m.id.n))
		}
		return
	}
	r.run.Messages++
	d, ok := from.decided[m.id]
	switch {
	case damaged:
	case !ok:
		from.addDifference(m.id.n, fmt.Sprintf("message %d to %s: %s", m.id.i, to.at, describeMessage(m.kind, m.body)), nothing)
	case d.to != to.at || d.kind != m.kind || !isSameBody(to, m, d.body):
		was, is := pointOut(describeMessage(m.kind, m.body), describeMessage(d.kind, d.body))
		from.addDifference(m.id.n, fmt.Sprintf("message %d to %s: %s", m.id.i, to.at, was), fmt.Sprintf("to %s: %s", d.to, is))
	}
}

// findUnsent finds messages that this version sends and whose receivers never got them, although the
// log says that all messages of the entry were acknowledged. The receiver's log may have been read
// earlier, so of a run that is not over only messages count that a later one has overtaken.
func (r *replayer) findUnsent(l *replayedLog, over bool) {
	for _, id := range l.order {
		d := l.decided[id]
		if d.repeat || id.n > l.reader.Floor() && !l.isClosed() {
			continue
		}
		to := r.logs[d.to]
		if to != nil {
			if _, ok := to.arrived[arrival{l.at, id}]; ok {
				continue
			}
		}
		if newest := to.newestFrom(l.at); !over && (newest.n < id.n || newest.n == id.n && newest.i < id.i) {
			r.run.Unchecked++
			continue
		}
		l.addDifference(id.n, nothing, fmt.Sprintf("message %d to %s: %s", id.i, d.to, describeMessage(d.kind, d.body)))
	}
}

// newestFrom returns the last message of a sender in a log.
func (l *replayedLog) newestFrom(from mailbox.Address) identity {
	if l == nil {
		return identity{}
	}
	return l.newest[from]
}

// isSameBody compares the body of a recorded message with a decided one. If the bytes differ, the
// recorded one counts as this version would write it: a field may have got another encoding since.
func isSameBody(to *replayedLog, m recordedMessage, decided []byte) bool {
	if string(m.body) == string(decided) {
		return true
	}
	v, ok := decodeMessage(to.at, m.kind, m.body)
	if !ok {
		return false
	}
	again, err := mailbox.Marshal(v)
	return err == nil && string(again) == string(decided)
}

func decodeMessage(to mailbox.Address, kind string, body []byte) (any, bool) {
	read := func(into any) error { return mailbox.Unmarshal(body, into) }
	if to.Agent() == mailbox.Super {
		f, ok, err := supervisor.Decode(kind, read)
		return f, ok && err == nil
	}
	f, ok, err := agent.Decode(kind, read)
	return f, ok && err == nil
}

// describeMessage returns the text of a message for people.
func describeMessage(kind string, body []byte) string {
	for _, to := range []mailbox.Address{mailbox.At("", mailbox.Super), mailbox.At("", "agent")} {
		v, ok := decodeMessage(to, kind, body)
		if !ok {
			continue
		}
		if text, err := json.Marshal(v); err == nil {
			return kind + " " + string(text)
		}
	}
	return fmt.Sprintf("%s, %d bytes", kind, len(body))
}

// pointOut shortens two texts so that both show the first place where they differ.
func pointOut(a, b string) (string, string) {
	at := 0
	for at < len(a) && at < len(b) && a[at] == b[at] {
		at++
	}
	from := max(0, at-beforeBytes)
	if from == 0 {
		return clip.Text(a, differenceBytes), clip.Text(b, differenceBytes)
	}
	kind, _, _ := strings.Cut(a, " ")
	cut := func(s string) string {
		return clip.Text(kind+" … "+strings.ToValidUTF8(s[from:], ""), differenceBytes)
	}
	return cut(a), cut(b)
}

// describeState returns what a machine knows, in one line.
func (l *replayedLog) describeState() string {
	if l.super != nil {
		s := l.super.State
		if s.Phase == "" {
			return "not opened"
		}
		text := fmt.Sprintf("%s, %d agents of %d live, %d waiting for a person, tokens: %d used, %d reserved of %d", s.Phase, s.Live, s.Count(), s.Parked,
			s.Pool.Spent.Tokens, s.Pool.Held.Tokens, s.Pool.Limit.Tokens)
		return text + describeEnd(string(s.Outcome.Reason))
	}
	s := l.agent.State
	if s.Phase == "" {
		return "no task yet"
	}
	text := fmt.Sprintf("%s in turn %d, reservation %d", s.Phase, s.Turn, s.Reservation)
	for _, c := range s.Calls {
		if c.Stage != agent.Ended {
			text += fmt.Sprintf(", call %s of %s %s", c.ID, c.Name, c.Stage)
		}
	}
	if s.Suspended.Why != "" {
		text += fmt.Sprintf(", waits: %s", s.Suspended.Why)
	}
	return clip.Text(text, differenceBytes) + describeEnd(string(s.Outcome.Reason))
}

// describeEnd returns how the machine has ended.
func (l *replayedLog) describeEnd() string {
	if l.agent != nil {
		return string(l.agent.State.Outcome.Reason) + ": " + clip.Text(l.agent.State.Outcome.Detail, differenceBytes)
	}
	return string(l.super.State.Outcome.Reason) + ": " + clip.Text(l.super.State.Outcome.Detail, differenceBytes)
}

func describeEnd(reason string) string {
	if reason == "" {
		return ""
	}
	return ", ended: " + reason
}
