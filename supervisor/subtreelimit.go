package supervisor

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
)

// SubtreeLimitSet changes the limit of a live agent and the agents below it together.
type SubtreeLimitSet struct {
	Agent spec.ID `msgpack:"a"`
	// Limit replaces those components of the limit that it names.
	Limit budget.Limit `msgpack:"l,omitempty"`
	// Frozen makes the agents of the subtree wait at their next turn, or lets them continue; nil: it stays
	// as it is. They do not end.
	Frozen *bool  `msgpack:"f,omitempty"`
	By     string `msgpack:"b,omitempty"` // who sets it
}

// Kind is the fact's word in logs.
func (SubtreeLimitSet) Kind() string { return "subtree_limit_set" }

// subtreeLimitMax bounds a component of a limit, so that sums do not overflow.
const subtreeLimitMax = int64(1) << 52

// Validate says why no request may set such a limit.
func (f SubtreeLimitSet) Validate() error {
	for _, n := range [...]int64{f.Limit.Tokens, f.Limit.Nano, f.Limit.Calls} {
		if n < 0 || n > subtreeLimitMax {
			return fmt.Errorf("a limit of a subtree is 0 to %d, not %d", subtreeLimitMax, n)
		}
	}
	if f.Frozen == nil && f.Limit == (budget.Limit{}) {
		return errors.New("neither a limit nor a freeze is named")
	}
	return nil
}

// CheckSubtreeLimit says why the limit cannot be set in that state; "": it can.
func CheckSubtreeLimit(s State, f SubtreeLimitSet) (why string) {
	if err := f.Validate(); err != nil {
		return err.Error()
	}
	m, ok := s.Member(f.Agent)
	switch {
	case !ok:
		return fmt.Sprintf("there is no agent %.64q", f.Agent)
	case s.Cancel != nil || s.Phase == Over || m.Done:
		return whyEnding(s, m)
	case f.Limit.Nano > 0 && !s.Run.Model.Price.Covered():
		return "the price of " + s.Run.Model.Name + " is not known, so a limit in money cannot be kept"
	}
	return ""
}

// handleSubtreeLimitSet changes the limit of a subtree. Agents that wait for a lower limit, or for the end of a freeze, are
// answered; allowances come back, so that each further attempt of the subtree is reserved.
func handleSubtreeLimitSet(s State, f SubtreeLimitSet) (State, []Effect) {
	if why := CheckSubtreeLimit(s, f); why != "" {
		return s.publishEvent(event.KindWarningRaised, event.Warning{What: fmt.Sprintf("the limit of the agents from %.64q on was not changed", f.Agent), Why: why, Live: s.Live}), nil
	}
	t := s.Pool.Account(string(f.Agent)).Subtree
	limit := budget.Limit{Tokens: cmp.Or(f.Limit.Tokens, t.Limit.Tokens), Nano: cmp.Or(f.Limit.Nano, t.Limit.Nano), Calls: cmp.Or(f.Limit.Calls, t.Limit.Calls)}
	frozen := t.Frozen
	if f.Frozen != nil {
		frozen = *f.Frozen
	}
	s.Pool = s.Pool.SetSubtree(string(f.Agent), limit, frozen)
	t = s.Pool.Account(string(f.Agent)).Subtree
	s = s.publishEvent(event.KindBudgetChanged, event.BudgetChanged{Agent: f.Agent, By: f.By, Subtree: subtreeBudget(t)})
	s.holders.recalling = true
	return requeueUnfrozen(s).drainQueue()
}

// SubtreeOf shows the limit of a member and those below it; nil: they have none of their own.
func SubtreeOf(s State, m Member) *event.SubtreeBudget {
	if t := s.Pool.Account(string(m.ID)).Subtree; t.Set {
		return subtreeBudget(t)
	}
	return nil
}

// PausedRequests is how many reservations wait for the end of a freeze.
func PausedRequests(s State) (n int) {
	s.queue.eachPaused(func(waitingRequest) { n++ })
	return n
}

func subtreeBudget(t budget.Subtree) *event.SubtreeBudget {
	return &event.SubtreeBudget{Limit: t.Limit, Used: t.Used.Minus(t.Held), Reserved: t.Held, Frozen: t.Frozen}
}

// isFrozen reports whether a member waits at its next turn because a subtree that it is in is frozen. A freeze of the
// whole run ends all agents, those too.
func isFrozen(s State, m Member) bool {
	return !s.Frozen && s.Pool.FrozenBy(string(m.ID)) != "" //mutant:frozen-subtree-goes-on
}

// pauseRequest keeps the request of a member of a frozen subtree apart from those that wait for
// budget: the others go on.
func pauseRequest(s State, m Member, f agent.Reserve) (State, []Effect) {
	s.queue, m.queueKey = s.queue.remove(m.queueKey).pause(waitingRequest{member: m.ID, request: f})
	return s.put(m), []Effect{Tell{To: m.ID, Fact: agent.BudgetFrozen{Reservation: f.Reservation}}}
}

// requeueUnfrozen queues the paused requests of members that are no longer frozen, in order of their arrival.
func requeueUnfrozen(s State) State {
	var thawed []waitingRequest
	s.queue.eachPaused(func(w waitingRequest) {
		if m, _ := s.Member(w.member); !isFrozen(s, m) {
			thawed = append(thawed, w)
		}
	})
	for _, w := range thawed { //mutant:thawed-agents-wait-for-ever
		m, _ := s.Member(w.member)
		s = s.enqueueRequest(m, w.request)
	}
	return s
}

// describeSubtree says which subtree limit does not cover an attempt; "": another limit is short.
func describeSubtree(s State, m Member, short budget.Short) string {
	if short == "" {
		return ""
	}
	at := s.Pool.ShortSubtree(string(m.ID), short)
	if at == "" {
		return ""
	}
	t := s.Pool.Account(at).Subtree
	limit, used := budget.Amount(t.Limit), t.Used.Minus(t.Held)
	switch short {
	case budget.ShortMoney:
		return fmt.Sprintf("the limit of %s and the agents below it leaves too little: $%.6f of $%.6f are spent or kept", at, dollars(used), dollars(limit))
	case budget.ShortCalls:
		return fmt.Sprintf("the limit of %s and the agents below it leaves too little: %d of %d tool calls are spent", at, used.Calls, limit.Calls)
	}
	return fmt.Sprintf("the limit of %s and the agents below it leaves too little: %d of %d tokens are spent or kept", at, used.Tokens, limit.Tokens)
}
