package sim

import (
	"encoding/binary"
	"fmt"

	"github.com/troupe-run/troupe/actors/life"
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// canon writes a machine's state in one way only, so that two are the same
// exactly if their bytes are.
func canon(b []byte, a *life.Agent, s *life.Supervisor) []byte {
	if a != nil {
		return canonAgent(b, &a.State)
	}
	return canonSuper(b, &s.State)
}

func num[T ~int | ~int64 | ~uint64](b []byte, v ...T) []byte {
	for _, x := range v {
		b = binary.AppendVarint(b, int64(x))
	}
	return b
}

func str[T ~string](b []byte, v ...T) []byte {
	for _, x := range v {
		b = append(num(b, len(x)), x...)
	}
	return b
}

func yes(b []byte, v ...bool) []byte {
	for _, x := range v {
		if x {
			b = append(b, 1)
		} else {
			b = append(b, 0)
		}
	}
	return b
}

func canonAgent(b []byte, s *agent.State) []byte {
	b = str(b, s.Phase)
	b = str(b, s.Life, s.Node, string(s.Transition), string(s.Ending), s.Query.Query, s.Query.Question, string(s.Query.Reason), s.Query.Call)
	b = num(b, s.Now, s.Began, s.RetryDue, s.Parked)
	t := &s.Task
	b = str(b, t.Run, string(t.ID), string(t.Parent), t.Name, t.Goal, t.System, t.Model.Name)
	b = num(b, t.Depth, len(t.Tools), t.Limits.Turns, t.Limits.Calls, t.Limits.Children)
	b = num(b, len(s.History))
	for i := range s.History {
		b = canonMessage(b, &s.History[i])
	}
	b = num(b, s.Turn, s.Lease, s.ToolCalls, s.Proposal, s.Vetoes, s.Useless, s.Cuts, s.Retries, s.Anchor.Messages, s.Grant.Lease)
	b = num(b, s.Anchor.Tokens, s.Grant.Output, s.Grant.Calls)
	b = canonUsage(b, s.Usage)
	b = canonAmount(b, s.Spent)
	b = yes(b, s.Open, s.CallsOut, s.Soft, s.Cancel != nil, s.Grant.Closing)
	if s.Cancel != nil {
		b = str(b, s.Cancel.Why, string(s.Cancel.As), string(s.Cancel.Of))
		b = yes(b, s.Cancel.Now)
	}
	b = num(b, len(s.Calls))
	for i := range s.Calls {
		c := &s.Calls[i]
		b = str(b, c.ID, c.Name, c.Args, string(c.Class), string(c.Child), string(c.Stage), c.Life, c.Result.Call, c.Result.Text)
		b = num(b, c.Attempt)
		b = yes(b, c.Cut, c.Result.Error)
	}
	b = num(b, len(s.Steers))
	b = str(b, s.Steers...)
	b = canonHabits(b, &s.Habits)
	b = str(b, s.Force)
	b = num(b, s.Asks)
	return canonOutcome(b, s.Outcome)
}

func canonHabits(b []byte, h *agent.Habits) []byte {
	b = num(b, h.Loops, h.Level, h.Calm, h.Forbidden, len(h.Last), len(h.Seen), len(h.Failing))
	for _, c := range h.Last {
		b = str(b, c.Tool)
		b = num(b, c.Call, c.Result, uint64(c.Turn))
		b = yes(b, c.Moved, c.Fresh, c.Futile)
	}
	b = num(b, h.Seen...)
	for _, f := range h.Failing {
		b = num(b, f.Target, uint64(f.Times))
	}
	b = str(b, h.Halted, h.Loop.Tool, string(h.Loop.Tier))
	return yes(b, h.Forced)
}

func canonMessage(b []byte, m *model.Message) []byte {
	b = str(b, string(m.Role), m.Text)
	b = num(b, len(m.Calls), len(m.Results))
	for i := range m.Calls {
		b = str(b, m.Calls[i].ID, m.Calls[i].Name, m.Calls[i].Args)
		b = yes(b, m.Calls[i].Cut)
	}
	for i := range m.Results {
		b = str(b, m.Results[i].Call, m.Results[i].Text)
		b = yes(b, m.Results[i].Error)
	}
	b = yes(b, m.Tombstone, m.Usage != nil)
	if m.Usage != nil {
		b = canonUsage(b, *m.Usage)
	}
	return b
}

func canonUsage(b []byte, u model.Usage) []byte {
	return num(b, u.Input, u.Output, u.CacheRead, u.CacheCreation)
}

func canonAmount(b []byte, v ...budget.Amount) []byte {
	for _, a := range v {
		b = num(b, a.Tokens, a.Nano, a.Calls)
	}
	return b
}

func canonOutcome(b []byte, o agent.Outcome) []byte {
	b = str(b, string(o.Reason), o.Text, o.Detail)
	return yes(b, o.Partial)
}

func canonSuper(b []byte, s *supervisor.State) []byte {
	b = str(b, string(s.Phase), s.Life, s.Run.Run)
	b = num(b, s.Now, s.Began, s.Ended)
	b = num(b, s.Live, s.Parked, s.Stopped, s.Waiting(), s.Run.Policy.Version, s.Run.Limits.Depth, s.Run.Limits.Children, s.Run.Limits.Agents)
	p := &s.Pool
	b = canonAmount(b, budget.Amount(p.Limit), p.Spent, p.Held, p.Kept, p.Unknown, p.Overrun)
	b = canonUsage(b, s.Usage)
	b = yes(b, s.Cancel != nil)
	if s.Cancel != nil {
		b = str(b, s.Cancel.Why, string(s.Cancel.As))
		b = yes(b, s.Cancel.Now)
	}
	b = canonOutcome(b, s.Outcome)
	s.Members(func(m supervisor.Member) {
		b = str(b, string(m.ID), string(m.Parent), m.Call, m.Name, m.Node)
		b = str(b, m.Rights...)
		b = num(b, m.Depth, m.Children, m.Turns, m.Calls, m.Vetoes)
		b = yes(b, m.Seen, m.Done, m.Stopping, m.Query != nil)
		b = canonUsage(b, m.Usage)
		b = canonOutcome(b, m.Outcome)
		a := p.Account(string(m.ID))
		b = num(b, a.Open, a.Closed)
		b = num(b, m.Sign)
		b = canonAmount(b, a.Held, a.Kept, a.Spent)
	})
	return b
}

// canonEffects writes what a step wants done.
func canonEffects[E any](b []byte, effects []E) []byte {
	for _, e := range effects {
		b = fmt.Appendf(b, "%T", e)
		if call, ok := any(e).(agent.CallModel); ok {
			b = num(b, call.Lease)
			for i := range call.Request.Messages {
				b = canonMessage(b, &call.Request.Messages[i])
			}
			continue
		}
		b = fmt.Appendf(b, "%+v", e)
	}
	return b
}
