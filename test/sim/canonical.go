package sim

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"reflect"
	"unsafe"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// canonicalState writes a machine's state in one way only, so that two are the same
// exactly if their bytes are.
func canonicalState(b []byte, a *activation.Agent, s *activation.Supervisor) []byte {
	if a != nil {
		return canonAgent(b, &a.State)
	}
	return canonSuper(b, &s.State)
}

func appendNumbers[T ~int | ~int64 | ~uint64](b []byte, v ...T) []byte {
	for _, x := range v {
		b = binary.AppendVarint(b, int64(x))
	}
	return b
}

func appendStrings[T ~string](b []byte, v ...T) []byte {
	for _, x := range v {
		b = append(appendNumbers(b, len(x)), x...)
	}
	return b
}

func appendBools(b []byte, v ...bool) []byte {
	for _, x := range v {
		if x {
			b = append(b, 1)
		} else {
			b = append(b, 0)
		}
	}
	return b
}

// byHand are the fields of an agent's state that have a form of their own
// here: the transcript, because it is long, and the task, which never changes.
var byHand = []string{"Task", "History"}

// byRule are all other fields of a state that can be seen from outside.
var byRule = visibleFields(reflect.TypeFor[agent.State](), 0, byHand)

func canonAgent(b []byte, s *agent.State) []byte {
	b = canonTask(b, &s.Task)
	b = canonHistory(appendNumbers(b, len(s.History)), s.History)
	for i := range byRule {
		b = byRule[i].form(b, unsafe.Add(unsafe.Pointer(s), byRule[i].offset))
	}
	return b
}

func canonTask(b []byte, t *spec.Task) []byte {
	b = appendStrings(b, t.Run, string(t.ID), string(t.Parent), t.Name, t.Goal, t.System, t.Model.Name)
	return appendNumbers(b, t.Depth, len(t.Tools), t.Limits.Turns, t.Limits.Calls, t.Limits.Children, len(t.LoopOptions.Hooks))
}

func canonHistory(b []byte, history []model.Message) []byte {
	for i := range history {
		b = canonMessage(b, &history[i])
	}
	return b
}

// canonOwn writes what a state that was stepped from a base refers to and its base does not. A step of another future
// that writes into it changes this form, or the form of the base.
func canonOwn(b []byte, s, base *agent.State) []byte {
	history := s.History
	if len(base.History) > 0 && len(history) > 0 && &history[0] == &base.History[0] {
		history = history[min(len(base.History), len(history)):]
	}
	b = canonHistory(canonTask(b, &s.Task), history)
	for i := range byRule {
		b = byRule[i].appendOwn(b, unsafe.Pointer(s), unsafe.Pointer(base))
	}
	return b
}

// sameAgent reports whether two states have the same form. It writes into the end of b, and returns it for later use.
func sameAgent(b []byte, x, y *agent.State) (bool, []byte) {
	b = canonTask(b[:0], &x.Task)
	n := len(b)
	if b = canonTask(b, &y.Task); !bytes.Equal(b[:n], b[n:]) || len(x.History) != len(y.History) {
		return false, b
	}
	if len(x.History) > 0 && &x.History[0] != &y.History[0] {
		b = canonHistory(b[:0], x.History)
		n = len(b)
		if b = canonHistory(b, y.History); !bytes.Equal(b[:n], b[n:]) {
			return false, b
		}
	}
	for i := range byRule {
		var same bool
		if same, b = byRule[i].isEqual(b, unsafe.Pointer(x), unsafe.Pointer(y)); !same {
			return false, b
		}
	}
	return true, b
}

func canonMessage(b []byte, m *model.Message) []byte {
	b = appendStrings(b, string(m.Role), m.Text)
	b = appendNumbers(b, len(m.Calls), len(m.Results))
	for i := range m.Calls {
		b = appendStrings(b, m.Calls[i].ID, m.Calls[i].Name, m.Calls[i].Args)
		b = appendBools(b, m.Calls[i].Cut)
	}
	for i := range m.Results {
		b = appendStrings(b, m.Results[i].Call, m.Results[i].Text)
		b = appendBools(b, m.Results[i].Error)
	}
	for i := range m.Opaque {
		b = appendStrings(b, m.Opaque[i].Issuer, m.Opaque[i].Kind, string(m.Opaque[i].Data))
	}
	b = appendBools(b, m.Tombstone, m.Usage != nil)
	if m.Usage != nil {
		b = canonUsage(b, *m.Usage)
	}
	return b
}

func canonUsage(b []byte, u model.Usage) []byte {
	return appendNumbers(b, u.Input, u.Output, u.CacheRead, u.CacheCreation, u.Reasoning)
}

func canonAmount(b []byte, v ...budget.Amount) []byte {
	for _, a := range v {
		b = appendNumbers(b, a.Tokens, a.Nano, a.Calls)
	}
	return b
}

func canonOutcome(b []byte, o spec.Outcome) []byte {
	b = appendStrings(b, string(o.Reason), o.Text, o.Detail)
	return appendBools(b, o.Partial)
}

func canonSuper(b []byte, s *supervisor.State) []byte {
	b = appendStrings(b, string(s.Phase), s.Activation, s.Run.Run)
	b = appendNumbers(b, s.Now, s.Began, s.Ended)
	b = appendNumbers(b, s.Live, s.Parked, s.Stopped, s.Waiting(), s.Run.Policy.Version, s.Run.Limits.Depth, s.Run.Limits.Children, s.Run.Limits.Agents, s.Messages, s.CancelTargets)
	p := &s.Pool
	b = canonAmount(b, budget.Amount(p.Limit), p.Spent, p.Held, p.Ahead, p.Kept, p.Carved, p.Unknown, p.Overrun)
	b = canonUsage(b, s.Usage)
	b = appendBools(b, s.Cancel != nil)
	if s.Cancel != nil {
		b = appendStrings(b, s.Cancel.Why, string(s.Cancel.As))
		b = appendBools(b, s.Cancel.Now)
	}
	b = canonOutcome(b, s.Outcome)
	b = fmt.Appendf(b, "%+v", supervisor.BacklogOf(*s, 0))
	s.Members(func(m supervisor.Member) {
		b = appendStrings(b, string(m.ID), string(m.Parent), m.Call, m.Name, m.Node)
		b = appendStrings(b, m.Rights...)
		b = appendNumbers(b, m.Depth, m.Children, m.Turns, m.Calls, m.Vetoes)
		b = appendBools(b, m.Seen, m.Done, m.Stopping, m.Silent, m.Background, m.Query != nil)
		b = canonUsage(b, m.Usage)
		b = canonOutcome(b, m.Outcome)
		a := p.Account(string(m.ID))
		b = appendNumbers(b, a.Open, a.Closed, a.AheadOf)
		b = appendNumbers(b, m.FirstMessageDue)
		b = canonAmount(b, a.Held, a.Ahead, a.Kept, a.Spent, a.Share, a.Below)
	})
	return b
}

// canonEffects writes the effects that a step requests. Of a request to a model only the messages count that are not
// those of the history, which is written elsewhere.
func canonEffects(b []byte, effects []agent.Effect, history []model.Message) []byte {
	for _, e := range effects {
		call, ok := e.(agent.CallModel)
		if !ok {
			b = appendDynamic(b, reflect.ValueOf(e))
			continue
		}
		b = appendNumbers(b, call.Reservation, len(call.Request.Messages))
		if m := call.Request.Messages; len(m) == 0 || len(history) == 0 || len(m) > len(history) || &m[0] != &history[0] {
			b = canonHistory(b, m)
		}
	}
	return b
}
