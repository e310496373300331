package sim

import (
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// watchVerdict checks that vetoes in a row are bounded.
func (s *sim) watchVerdict(t activation.OutboxMessage) {
	id := spec.ID(t.To.Agent())
	var v agent.StopVetoed
	if t.Kind == "stop_allowed" {
		s.ledger.vetoes[id] = 0
		return
	}
	if err := mailbox.Unmarshal(t.Body, &v); err != nil {
		s.fail("stop_vetoed: %v", err)
	}
	if s.ledger.vetoes[id]++; s.ledger.vetoes[id] > supervisor.VetoesMax && !v.Final {
		s.fail("%s is vetoed %d times in a row", id, s.ledger.vetoes[id])
	}
}

// watchTurn checks that agents that wait for budget are answered in order of arrival.
func (s *sim) watchTurn(t activation.OutboxMessage) {
	id := spec.ID(t.To.Agent())
	switch i := slices.Index(s.ledger.queue, id); {
	case i > 0 && !s.hurtAny(): // rot in the log changes the order of arrival
		s.fail("%s is answered before %s, which waits longer", id, s.ledger.queue[0])
	case i == 0:
		s.ledger.queue = s.ledger.queue[1:]
	}
}

// watchLeave removes agents from the queue that settle or end.
func (s *sim) watchLeave(after *supervisor.State, f activation.Fact) {
	s.ledger.queue = slices.DeleteFunc(s.ledger.queue, func(who spec.ID) bool {
		m, _ := after.Member(who)
		return m.Done || f.Kind == "settle" && string(who) == f.From.Agent()
	})
}

// watchQueue keeps the judge's own list of those who wait.
func (s *sim) watchQueue(before, after *supervisor.State, f activation.Fact) {
	if f.Kind == "reserve" && after.Waiting() > before.Waiting() {
		s.ledger.queue = append(s.ledger.queue, spec.ID(f.From.Agent()))
	}
	if len(s.ledger.queue) != after.Waiting() && !s.hurtAny() {
		s.fail("%d wait for money, and %v should", after.Waiting(), s.ledger.queue)
	}
}

// watchEnds checks that the run remembers a cancel of a named agent, and that an agent that
// ends cancels its children.
func (s *sim) watchEnds(before, after *supervisor.State, f activation.Fact, out activation.Stepped) {
	if f.Kind == "canceled" {
		if e := read[agent.Canceled](s, f); e.Of != "" {
			after.Members(func(m supervisor.Member) {
				if m.ID == e.Of && !m.Done {
					s.ledger.stopping[m.ID] = true
				}
			})
		}
	}
	if before.Live <= after.Live {
		return
	}
	after.Members(func(m supervisor.Member) {
		was, _ := before.Member(m.ID)
		if !m.Done || was.Done {
			return
		}
		if f.Kind == "woke" && after.Now < was.Sign {
			s.fail("%s is given up too early", m.ID)
		}
		after.Members(func(c supervisor.Member) {
			told := slices.ContainsFunc(out.Messages, func(t activation.OutboxMessage) bool {
				return t.Kind == "canceled" && t.To.Agent() == string(c.ID)
			})
			if c.Parent == m.ID && !c.Done && !told {
				s.fail("%s has ended, and its child %s goes on", m.ID, c.ID)
			}
		})
	})
}
