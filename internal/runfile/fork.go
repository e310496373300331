package runfile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
)

// errForkPoint says that a log has no such point.
var errForkPoint = errors.New("there is no such point")

// CutFork returns the consistent cut of the logs of a run at a point of one agent. The point is the entry with which
// a turn is complete ("3"), a tool call gets its result ("3-0"), or a question gets its answer ("3-0.1"; a question
// that is still open: the entry that asks it). The agent's log ends with that entry, and nothing in the cut is an
// effect of it: so what the entry says may be changed. Of the other logs the cut has what was stored before that
// entry, and whatever it depends on.
func CutFork(entries []mailbox.Message, agentID, point string) ([]mailbox.Message, error) {
	c := newCut(entries)
	if len(c.order) == 0 {
		return nil, fmt.Errorf("%w: the run has no log", errForkPoint)
	}
	at := mailbox.At(c.order[0].Run(), agentID).Bare()
	l := c.logs[at]
	if l == nil || agentID == mailbox.Super || at.Agent() != agentID {
		return nil, fmt.Errorf("%w: there is no agent %.80q", errForkPoint, agentID)
	}
	find, err := newPointFinder(point)
	if err != nil {
		return nil, err
	}
	last, err := find.findIn(l.messages())
	if err != nil {
		return nil, err
	}
	c.limitTo(at, last)
	for c.shrink() {
	}
	if l.kept != last {
		return nil, fmt.Errorf("%w: entry %d of %s has no consistent cut, so a log of the run has lost entries", errForkPoint, last+1, at)
	}
	l.kept++
	return c.keptEntries(), nil
}

// limitTo limits a cut to what was stored before one entry of a log, and what that entry depends on.
func (c *cut) limitTo(at mailbox.Address, last int) {
	stamp := c.logs[at].entries[last].message.Stamp()
	needed := c.causesOf(at, last)
	for other, l := range c.logs {
		l.kept = max(needed[other], l.storedUntil(stamp)) //mutant:cut-of-what-was-stored
	}
	c.logs[at].kept = last
}

// storedUntil counts the first entries of a log that were stored until a stamp.
func (l *cutLog) storedUntil(stamp mailbox.Stamp) int {
	i := slices.IndexFunc(l.entries, func(e cutEntry) bool { return e.message.Stamp().Compare(stamp) > 0 })
	if i < 0 {
		return len(l.entries)
	}
	return i
}

// causesOf counts the entries of each log that an entry depends on: the causes of each message, and the messages that
// an ack floor covers, with what those depend on.
func (c *cut) causesOf(at mailbox.Address, last int) map[mailbox.Address]int {
	needed, done, arrivals := map[mailbox.Address]int{at: last + 1}, map[mailbox.Address]int{}, c.arrivals()
	for grows := true; grows; {
		grows = false
		for _, log := range c.order {
			for ; done[log] < needed[log]; done[log]++ {
				grows = true
				e := c.logs[log].entries[done[log]]
				for _, item := range e.items {
					if l := c.logs[e.from]; l != nil {
						needed[e.from] = max(needed[e.from], int(min(item.N, uint64(len(l.entries)))))
					}
				}
				sent := arrivals[log]
				for len(sent) > 0 && sent[0].cause <= e.floor {
					needed[sent[0].at] = max(needed[sent[0].at], sent[0].entry)
					sent = sent[1:]
				}
				arrivals[log] = sent
			}
		}
	}
	return needed
}

// arrival says which entry of a receiver's log, counted from 1, holds a message, and which
// entry of its sender caused it.
type arrival struct {
	cause uint64
	at    mailbox.Address
	entry int
}

// arrivals returns the messages of each sender, in the order of their causes.
func (c *cut) arrivals() map[mailbox.Address][]arrival {
	sent := map[mailbox.Address][]arrival{}
	for _, at := range c.order {
		for i, e := range c.logs[at].entries {
			for _, item := range e.items {
				sent[e.from] = append(sent[e.from], arrival{item.N, at, i + 1})
			}
		}
	}
	for _, list := range sent {
		slices.SortStableFunc(list, func(a, b arrival) int { return cmp.Compare(a.cause, b.cause) })
	}
	return sent
}

func (l *cutLog) messages() (log []mailbox.Message) {
	for _, e := range l.entries {
		log = append(log, e.message)
	}
	return log
}

// pointFinder finds the entry of a point in the log of an agent.
type pointFinder struct {
	point string
	turn  int // -1: the point is a call or a question
}

func newPointFinder(point string) (pointFinder, error) {
	if turn, err := strconv.Atoi(point); err == nil && strconv.Itoa(turn) == point && turn >= 0 { // not 01 or +1
		return pointFinder{point, turn}, nil
	}
	if !strings.ContainsAny(point, "-.") || strings.HasPrefix(point, "-") {
		return pointFinder{}, fmt.Errorf("%w: %.80q is neither a turn nor a call (TURN-INDEX) nor a question", errForkPoint, point)
	}
	return pointFinder{point, -1}, nil
}

// findIn returns the index of the entry in the log.
func (p pointFinder) findIn(log []mailbox.Message) (int, error) {
	m := &activation.Agent{Addr: log[0].To}
	reader := activation.Watch(log[0].To, m)
	complete, asks := -1, -1
	for i, entry := range log {
		before := m.State
		if r := reader.Next(entry); r.Err != nil {
			return 0, fmt.Errorf("%w: %w", errForkPoint, r.Err)
		}
		if m.State.Turned(m.State.Turn) {
			complete = m.State.Turn
		}
		if p.turn >= 0 && complete == p.turn || p.turn < 0 && p.isResolved(before, m.State) {
			return i, nil
		}
		if asks < 0 && p.isAsked(m.State) {
			asks = i
		}
	}
	switch {
	case p.turn < 0 && asks >= 0:
		return asks, nil
	case p.turn < 0:
		return 0, fmt.Errorf("%w: %s has no result of a call and no answer to a question %.80q", errForkPoint, log[0].To.Agent(), p.point)
	}
	return 0, fmt.Errorf("%w: %s has no complete turn %d, its complete turns are 0 to %d", errForkPoint, log[0].To.Agent(), p.turn, complete)
}

// isAsked reports whether the agent waits for the answer to the question.
func (p pointFinder) isAsked(s agent.State) bool {
	return s.Phase == agent.Waiting && s.Suspended.Question.Query == p.point
}

// isResolved reports whether a step has brought the answer to the question or the result of the call.
func (p pointFinder) isResolved(before, after agent.State) bool {
	return p.isAsked(before) && !p.isAsked(after) || isOpenCall(before, p.point) && !isOpenCall(after, p.point)
}

func isOpenCall(s agent.State, id string) bool {
	return slices.ContainsFunc(s.Calls, func(c agent.Call) bool { return c.ID == id && c.Stage != agent.Ended })
}
