package sim

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

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

// byRule are the paths of all other fields of a state that can be seen from outside: a new one counts
// by itself, and so does each field of an embedded struct.
var byRule = visiblePaths(reflect.TypeFor[agent.State](), nil)

func visiblePaths(t reflect.Type, path []int) (list [][]int) {
	for i := range t.NumField() {
		f, at := t.Field(i), append(slices.Clone(path), i)
		switch {
		case f.Anonymous && f.Type.Kind() == reflect.Struct:
			list = append(list, visiblePaths(f.Type, at)...)
		case f.IsExported() && !slices.Contains(byHand, f.Name):
			list = append(list, at)
		}
	}
	return list
}

func canonAgent(b []byte, s *agent.State) []byte {
	t := &s.Task
	b = appendStrings(b, t.Run, string(t.ID), string(t.Parent), t.Name, t.Goal, t.System, t.Model.Name)
	b = appendNumbers(b, t.Depth, len(t.Tools), t.Limits.Turns, t.Limits.Calls, t.Limits.Children, len(t.LoopOptions.Hooks))
	b = appendNumbers(b, len(s.History))
	for i := range s.History {
		b = canonMessage(b, &s.History[i])
	}
	v := reflect.ValueOf(s).Elem()
	for _, at := range byRule {
		b = canonValue(b, v.FieldByIndex(at))
	}
	return b
}

// canonValue writes any plain data.
func canonValue(b []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.String:
		return appendStrings(b, v.String())
	case reflect.Bool:
		return appendBools(b, v.Bool())
	case reflect.Int, reflect.Int64, reflect.Int32:
		return appendNumbers(b, v.Int())
	case reflect.Uint8, reflect.Uint64, reflect.Uint32:
		return appendNumbers(b, v.Uint())
	case reflect.Float64:
		return appendNumbers(b, int64(math.Float64bits(v.Float())))
	case reflect.Slice:
		b = appendBools(appendNumbers(b, v.Len()), v.IsNil())
		for i := range v.Len() {
			b = canonValue(b, v.Index(i))
		}
		return b
	case reflect.Array:
		for i := range v.Len() {
			b = canonValue(b, v.Index(i))
		}
		return b
	case reflect.Map: // of words
		b = appendNumbers(b, v.Len())
		keys := v.MapKeys()
		slices.SortFunc(keys, func(x, y reflect.Value) int { return strings.Compare(x.String(), y.String()) })
		for _, k := range keys {
			b = appendStrings(b, k.String(), v.MapIndex(k).String())
		}
		return b
	case reflect.Pointer:
		if b = appendBools(b, v.IsNil()); !v.IsNil() {
			b = canonValue(b, v.Elem())
		}
		return b
	case reflect.Struct:
		for i := range v.NumField() {
			b = canonValue(b, v.Field(i))
		}
		return b
	}
	panic("sim: a state holds a " + v.Kind().String())
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

// canonEffects writes the effects that a step requests.
func canonEffects[E any](b []byte, effects []E) []byte {
	for _, e := range effects {
		b = fmt.Appendf(b, "%T", e)
		if call, ok := any(e).(agent.CallModel); ok {
			b = appendNumbers(b, call.Reservation)
			for i := range call.Request.Messages {
				b = canonMessage(b, &call.Request.Messages[i])
			}
			continue
		}
		b = fmt.Appendf(b, "%+v", e)
	}
	return b
}
