package supervisor

import (
	"maps"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/internal/clip"
)

// Result sums up the run in its current state; it is final once the Phase is Over.
func (s State) Result() event.Result {
	spend := spendOf(s)
	r := event.Result{Type: "result", Run: s.Run.Run, Conversation: s.Run.Conversation, Reason: s.Outcome.Reason,
		Partial: s.Outcome.Partial, Text: s.Outcome.Text, Detail: s.Outcome.Detail, Journal: s.Outcome.Journal,
		CostUSD: spend.CostUSD, CostKnown: spend.CostKnown, CostEstimated: spend.CostEstimated, Budget: spend.Budget}
	end := s.Ended
	if end == 0 {
		end = s.Now
	}
	r.DurationMS, r.Cancel = end-s.Began, s.cancelProgress()
	s.Members(func(m Member) {
		account := s.Pool.Account(string(m.ID))
		account.Spent.Nano += s.Pool.Account(chargeAccount(m.ID)).Spent.Nano
		a := event.AgentResult{ID: m.ID, Name: m.Name, Node: m.Node, Pool: m.NodePool, Turns: m.Turns, Calls: m.Calls, Phase: "live",
			Tokens: account.Spent.Tokens, CostUSD: float64(account.Spent.Nano) / budget.NanoPerUSD, Reason: m.Outcome.Reason,
			Usage: m.Usage, ModelMS: m.ModelMS, ToolMS: m.ToolMS, GivenUp: m.GivenUp}
		if m.ID != spec.Root {
			parent := m.Parent
			a.Parent, a.Detail = &parent, memberDetail(m)
		}
		if q := m.Query; q != nil {
			a.Query = &event.OpenQuery{Query: q.Query, Question: q.Question, Reason: q.Reason, Call: q.Call,
				Digest: q.Digest, Rule: q.Rule, DueMS: q.Due, Approvals: q.Approvals, ApprovedBy: q.ApprovedBy}
		}
		switch {
		case m.Done:
			a.Phase = "done"
		case m.Query != nil:
			a.Phase = "parked"
			if s.Phase != Over {
				r.Reason, r.Partial, r.Detail = m.Query.Reason, true, m.Query.Question
			}
		}
		r.Turns += m.Turns
		r.ModelMS, r.ToolMS = r.ModelMS+m.ModelMS, r.ToolMS+m.ToolMS
		r.Usage = r.Usage.Add(m.Usage)
		r.Agents = append(r.Agents, a)
	})
	r.HandedTo = s.roster.handedTo()
	r.Subtype = event.Subtype(r.Reason)
	r.IsError = r.Subtype != "success"
	return r
}

// memberDetailMax is how many bytes of a detail the list of agents has.
const memberDetailMax = 240

// memberDetail is why an agent ended without success, on one line.
func memberDetail(m Member) string {
	if !m.Done || !m.Outcome.Partial {
		return ""
	}
	return clip.Marked(strings.Join(strings.Fields(m.Outcome.Detail), " "), memberDetailMax, "…")
}

// spendOf returns what the run has spent, and its limits.
func spendOf(s State) event.Spend {
	p := &s.Pool
	return event.Spend{
		CostUSD: float64(p.Spent.Nano) / budget.NanoPerUSD, CostKnown: s.Run.Model.Price.Known && s.Foreign == 0 && !s.before.unknown,
		CostEstimated: s.before.estimated || s.Charged || s.Run.estimatesPrices(),
		Budget: event.BudgetResult{LimitUSD: float64(p.Limit.Nano) / budget.NanoPerUSD, ReservedUSD: float64(p.Held.Nano) / budget.NanoPerUSD,
			Limit: p.Limit.Tokens, Used: p.Spent.Tokens, Reserved: p.Held.Tokens,
			Unknown: p.Unknown.Tokens, Overrun: p.Overrun.Tokens, Frozen: s.Frozen},
	}
}

// modelsBefore says how well the prices of the models that a fork has replaced are known.
type modelsBefore struct{ unknown, estimated bool }

// handleModelSet changes the model of agents that the run begins from here on, unless their definitions name one. The
// agents of a fork that have begun read the change in their own logs.
func handleModelSet(s State, f agent.ModelSet) State {
	if s.Pool.Spent.Tokens > 0 {
		s.before = modelsBefore{s.before.unknown || !s.Run.Model.Price.Known, s.before.estimated || s.Run.Model.Price.Estimated}
	}
	s.Run.Model, s.Run.LoopOptions.Context.Model, s.Run.Why = f.Model, f.Summaries, "the run was forked with it" //mutant:children-begin-with-the-model-before
	s.Run.Hashes = maps.Clone(s.Run.Hashes)
	if s.Run.Hashes != nil {
		s.Run.Hashes[spec.RouteOf(f.Model.Name)] = f.Version
	}
	return s
}

// estimatesPrices reports whether a model of the run has only a list price.
func (o Opened) estimatesPrices() bool {
	return o.Model.Price.Estimated || slices.ContainsFunc(o.Definitions, func(d Definition) bool { return d.Model != nil && d.Model.Price.Estimated })
}
