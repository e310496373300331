package activation

import (
	"errors"
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// Agent is the machine that steps an agent's log.
type Agent struct {
	Addr  mailbox.Address
	State agent.State
	// Watch makes Step return the events of the step.
	Watch bool
}

// Ended reports whether the agent is done.
func (a *Agent) Ended() bool { return a.State.Phase == agent.Done }

// Rests reports whether the agent waits only for other actors or the clock.
func (a *Agent) Rests() (due int64, ok bool) { return a.State.Rests() } //mutant:rests-without-its-due-time

// Step steps one fact. An agent sends messages only to its supervisor.
func (a *Agent) Step(f Fact) Stepped {
	fact, ok, err := agent.Decode(f.Kind, bodyDecoder(f.Body))
	if err != nil || !ok {
		return Stepped{Err: fmt.Errorf("fact %q: %w", f.Kind, orUnknown(err))}
	}
	if f.From != "" && f.From.Agent() != mailbox.Super {
		return Stepped{Err: fmt.Errorf("fact %q from %s: %w", f.Kind, f.From, errStranger)}
	}
	before := a.State
	e := agent.Input{N: f.N, At: f.At, Activation: f.Activation, FromSupervisor: f.From != "", Damaged: f.Damaged, Fact: fact}
	next, stepped := agent.Step(before, e)
	a.State = next
	var out Stepped
	for _, fx := range stepped.Effects {
		ask, ok := fx.(agent.SupervisorMessage)
		if !ok {
			out.Effects = append(out.Effects, fx)
			continue
		}
		body, err := mailbox.Marshal(ask)
		if err != nil {
			panic("activation: a message to the supervisor does not encode: " + err.Error())
		}
		out.Messages = append(out.Messages, OutboxMessage{To: mailbox.At(a.Addr.Run(), mailbox.Super), Kind: ask.Kind(), Body: body,
			Hold: mayWait(ask, next)})
	}
	if a.Watch {
		out.Events = stepped.Events
	}
	return out
}

// mayWait reports whether a message may wait to share an entry with the next ones (PROTOCOL P21): a
// settlement, while the agent is at work. Under an allowance the supervisor has not heard of the attempt
// before: it must before a side effect of the reply is over, so that a log that loses its tail is noticed (P13).
// A call that is no read may be such an effect, and may begin in a later step: after hooks, or after reads.
func mayWait(ask agent.SupervisorMessage, next agent.State) bool {
	settle, ok := ask.(agent.Settle)
	switch {
	case !ok || settle.Lost:
		return false
	case settle.Under == 0:
		return next.Phase == agent.Acting
	}
	mayAct := slices.ContainsFunc(next.Calls, func(c agent.Call) bool { return c.Class != model.Read && c.Stage != agent.Ended })
	return !mayAct && (next.Phase == agent.Acting || next.Phase == agent.Thinking)
}

// Supervisor is the machine that steps a supervisor's log.
type Supervisor struct {
	Addr  mailbox.Address
	State supervisor.State
	Watch bool
}

// Ended reports whether the run is over and waits for no member: all have ended, or the run was halted.
func (s *Supervisor) Ended() bool {
	return s.State.Phase == supervisor.Over && (s.State.Live <= 0 || s.State.Halted)
}

// Rests reports whether the run waits only for others.
func (s *Supervisor) Rests() (due int64, ok bool) { return s.State.Rests() }

// Step steps one fact.
func (s *Supervisor) Step(f Fact) Stepped {
	fact, ok, err := supervisor.Decode(f.Kind, bodyDecoder(f.Body))
	if err != nil || !ok {
		return Stepped{Err: fmt.Errorf("fact %q: %w", f.Kind, orUnknown(err))}
	}
	from := spec.ID("")
	if f.From != "" {
		from = spec.ID(f.From.Agent())
	}
	_, ask := fact.(agent.SupervisorMessage)
	m, known := s.State.Member(from)
	if ask != (from != "") || known && m.NodePool != f.From.Pool() {
		return Stepped{Err: fmt.Errorf("fact %q from %q: %w", f.Kind, f.From, errStranger)}
	}
	before := s.State
	e := supervisor.Input{N: f.N, At: f.At, From: from, Damaged: f.Damaged, Fact: fact}
	next, stepped := supervisor.Step(before, e)
	s.State = next
	var out Stepped
	for _, fx := range stepped.Effects {
		tell, ok := fx.(supervisor.Tell)
		if !ok {
			out.Effects = append(out.Effects, fx)
			continue
		}
		body, err := mailbox.Marshal(tell.Fact)
		if err != nil {
			panic("activation: a fact does not encode: " + err.Error())
		}
		to := mailbox.At(s.Addr.Run(), string(tell.To)).In(f.From.Pool())
		if m, ok := next.Member(tell.To); ok {
			to = to.In(m.NodePool)
		}
		out.Messages = append(out.Messages, OutboxMessage{To: to, Kind: tell.Fact.Kind(), Body: body})
	}
	if s.Watch {
		out.Events = stepped.Events
	}
	return out
}

func bodyDecoder(body []byte) func(any) error {
	return func(into any) error { return mailbox.Unmarshal(body, into) }
}

var (
	errUnknown  = errors.New("activation: unknown kind")
	errStranger = errors.New("activation: this sender may not send this kind")
)

func orUnknown(err error) error {
	if err == nil {
		return errUnknown
	}
	return err
}
