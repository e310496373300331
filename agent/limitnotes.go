package agent

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/model"
)

// At a turn boundary the loop tells the model which limits are near, once for each limit and level. A limit is near
// if a given share of it is used, or if the rest covers only a few turns. So the note comes in time whatever a turn
// costs.

// RunLeft is the rest of the run's budget when it grants a reservation. All agents of the run
// share it.
type RunLeft struct {
	Left budget.Amount `msgpack:"l"`
	Of   budget.Limit  `msgpack:"o"`
}

// limitKind is a kind of limit in the notes to the model.
type limitKind int

const (
	turnLimit limitKind = iota
	timeLimit
	tokenLimit
	moneyLimit
	callLimit
	limitKinds
)

// noteLevel is how near a limit is.
type noteLevel uint8

const (
	notNear noteLevel = iota
	near
	last
)

func (l noteLevel) word() string { return [...]string{"", "near", "last"}[l] }

// Turns for which the rest of a budget must last; if it does not, the budget is near its end.
const (
	turnsWhenNear = 5
	turnsWhenLast = 3
)

// limitNotes remember what the model was told.
type limitNotes struct {
	told  [limitKinds]noteLevel
	run   *RunLeft      // by the newest grant that said it
	spent budget.Amount // by this agent, when run came
	calls int           // by this agent, when run came
}

// withRun records the rest of the run's budget, if a grant has it, and what the agent has used
// until then.
func (n limitNotes) withRun(left *RunLeft, spent budget.Amount, calls int) limitNotes {
	if left != nil {
		n.run, n.spent, n.calls = left, spent, calls
	}
	return n
}

// remaining is the rest of a limit: the tighter of the agent's own and the run's.
type remaining struct {
	left, of int64
	turn     int64 // what one turn takes at most; 0: not known
	what     string
	shared   bool               // it is the run's
	show     func(int64) string // how a text shows an amount
}

// text describes the remaining amounts to the model. It is built on demand, because most turns need no note.
func (r remaining) text() string {
	what := r.what
	if r.shared {
		what += " of all agents of this run"
	}
	return what + ": " + r.show(r.left) + " of " + r.show(r.of) + timeUnit(r.what) + " are left"
}

const timeWord = "time"

func timeUnit(what string) string {
	if what == timeWord {
		return " minutes"
	}
	return ""
}

func showNumber(n int64) string   { return strconv.FormatInt(n, 10) }
func showMoney(nano int64) string { return fmt.Sprintf("$%.2f", float64(nano)/budget.NanoPerUSD) }
func showTime(ms int64) string    { return fmt.Sprintf("%d:%02d", ms/60_000, ms/1000%60) }

// level is how near the limit is.
func (r remaining) level(n spec.LimitNotes) noteLevel {
	if r.of <= 0 {
		return notNear
	}
	left := max(0, r.left)
	used := 100 * (float64(r.of-left) / float64(r.of)) // no overflow
	switch {
	case used >= float64(n.Last), r.turn > 0 && left < turnsWhenLast*r.turn:
		return last
	case used >= float64(n.Near), r.turn > 0 && left < turnsWhenNear*r.turn:
		return near
	}
	return notNear
}

// ofAgent is the rest of the agent's own limit; without a limit, it is nothing.
func (r remaining) ofAgent(left, of int64) remaining {
	if of <= 0 {
		return remaining{}
	}
	r.left, r.of = max(0, left), of
	return r
}

// ofRun is ofAgent for a limit of the run.
func (r remaining) ofRun(left, of int64) remaining {
	r.shared = true
	return r.ofAgent(left, of)
}

// tighter returns the remainder that has less left.
func tighter(a, b remaining) remaining {
	if a.of == 0 || b.of != 0 && b.left < a.left {
		return b
	}
	return a
}

// remainingLimits lists the rest of each limit.
func remainingLimits(s *State) [limitKinds]remaining {
	var list [limitKinds]remaining
	l := s.Task.Limits
	turns := int64(l.Turns - s.Turn)
	list[turnLimit] = remaining{left: turns, of: int64(l.Turns), what: "turns", show: showNumber}
	if turns == 1 { // whatever its share
		list[turnLimit].turn = 1
	}
	list[timeLimit] = remaining{left: max(0, l.SoftMS-s.workTime()), of: l.SoftMS, what: timeWord, show: showTime}
	request := s.attemptRequest()
	turn := request.Price.Bound(request.Input, min(request.Output, spec.OutputDefault))
	tokens := remaining{turn: turn.Tokens, what: "tokens", show: showNumber}
	money := remaining{turn: turn.Nano, what: "money", show: showMoney}
	calls := remaining{what: "tool calls", show: showNumber}
	list[tokenLimit] = tokens.ofAgent(l.Tokens-s.Spent.Tokens, l.Tokens)
	list[moneyLimit] = money.ofAgent(l.Nano-s.Spent.Nano, l.Nano)
	list[callLimit] = calls.ofAgent(int64(l.Calls-s.ToolCalls), int64(l.Calls))
	if run := s.LimitNotes.run; run != nil {
		since := s.Spent.Minus(s.LimitNotes.spent)
		list[tokenLimit] = tighter(list[tokenLimit], tokens.ofRun(run.Left.Tokens-since.Tokens, run.Of.Tokens))
		list[moneyLimit] = tighter(list[moneyLimit], money.ofRun(run.Left.Nano-since.Nano, run.Of.Nano))
		list[callLimit] = tighter(list[callLimit], calls.ofRun(run.Left.Calls-int64(s.ToolCalls-s.LimitNotes.calls), run.Of.Calls))
	}
	return list
}

// limitWords name the limits for observers.
var limitWords = [limitKinds]string{"turns", "time", "tokens", "money", "tool_calls"}

// noteLimits appends a message about the limits that came near since the last one.
func noteLimits(s *State) *State {
	n := s.Task.LoopOptions.LimitNotes
	if n.Near <= 0 || s.Turn == 0 {
		return s
	}
	n.Last = max(n.Last, n.Near)
	var lines []string
	highest := notNear
	for kind, r := range remainingLimits(s) {
		at := r.level(n)
		if at <= s.LimitNotes.told[kind] {
			continue
		}
		s.LimitNotes.told[kind], highest = at, max(highest, at)
		lines = append(lines, r.text())
		s.events.publish(contextEvents, event.KindLimitNear, event.LimitNear{What: limitWords[kind], Level: at.word(), Left: r.left, Limit: r.of})
	}
	if len(lines) == 0 {
		return s
	}
	advice := "Plan what you still do, so that your result is complete in time."
	if highest == last {
		advice = "Finish now: give your result, and say what is left undone."
	}
	return s.appendMessage(model.Message{Role: model.User, Text: "[Limits] " + strings.Join(lines, "; ") + ". " + advice})
}
