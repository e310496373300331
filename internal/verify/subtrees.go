package verify

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/mailbox"
)

// subtreeBody is a change of the limit of an agent and those below it.
type subtreeBody struct { // subtree_limit_set
	Agent  string `msgpack:"a"`
	Limit  Amount `msgpack:"l"`
	Frozen *bool  `msgpack:"f"`
}

// subtree is what holds for an agent and those below it.
type subtree struct {
	limit   Amount // a component of 0 is not limited
	limited uint64 // the entry that has set the limit
	frozen  uint64 // the entry that has frozen it; 0: it is not frozen
}

// isWithin reports whether an agent is another one or below it. This package has its own copy of spec.ID.IsBelow, so that
// a mistake there does not hide itself.
func isWithin(agent, of string) bool { return agent == of || strings.HasPrefix(agent, of+"-") }

// isOver reports whether all agents of the run that have a task by an entry have ended: the result is published, and
// later limits change nothing.
func (b *ledger) isOver(entry uint64) bool {
	begun := false
	for _, l := range b.v.logs {
		if l.isSuper() || l.task == nil || l.taskCause > entry {
			continue
		}
		begun = true
		if !b.of(l.at).left && !b.isSilent(l, entry) {
			return false
		}
	}
	return begun
}

// isSilent reports whether an agent was given up by an entry because it had sent nothing.
func (b *ledger) isSilent(l *log, entry uint64) bool {
	woke := b.super.woke["sign/"+l.at.Agent()]
	return woke > 0 && woke <= entry && slices.ContainsFunc(l.inbox, func(m message) bool {
		return m.kind == "canceled" && m.n == woke
	})
}

// limitSubtree reads a change of a subtree. The supervisor refuses one of an agent that does not work, or of money where
// the price of the model of the run is not known.
func (b *ledger) limitSubtree(entry uint64, c subtreeBody) {
	l := b.v.logOf(c.Agent)
	switch {
	case l == nil || l.task == nil || l.taskCause > entry || b.of(l.at).left:
		return
	case b.super.canceled > 0 && b.super.canceled <= entry, c.Limit.Nano > 0 && !b.isPriced():
		return
	}
	t := b.subtrees[c.Agent]
	if c.Limit != (Amount{}) {
		t.limit = Amount{cmp.Or(c.Limit.Tokens, t.limit.Tokens), cmp.Or(c.Limit.Nano, t.limit.Nano),
			cmp.Or(c.Limit.Calls, t.limit.Calls)}
		t.limited = entry
	}
	switch {
	case c.Frozen == nil:
	case *c.Frozen:
		t.frozen = entry
	default:
		t.frozen = 0
	}
	b.subtrees[c.Agent] = t
}

// isPriced reports whether the prices of all models that the run has had are known.
func (b *ledger) isPriced() bool {
	for _, m := range b.super.models {
		if !m.Model.Price.isCovered() {
			return false
		}
	}
	return b.super.opened[0].Model.Price.isCovered()
}

// checkSubtrees checks a grant against the subtrees that the agent is in. A closing turn may be granted out of what was
// kept for it, although the limit was lowered since.
func (b *ledger) checkSubtrees(g grantOf, added Amount) {
	for _, of := range slices.Sorted(maps.Keys(b.subtrees)) { // findings come in one order
		t := b.subtrees[of]
		if !isWithin(g.at.at.Agent(), of) {
			continue
		}
		if t.frozen > 0 && t.frozen < g.cause && b.frozen == 0 {
			b.addFinding(Granted, g.cause,
				"reservation %d of %s is granted, and entry %d has frozen %s and the agents below it", g.Reservation, g.at.at, t.frozen, of)
		}
		if g.Closing {
			continue
		}
		used := b.usedWithin(of)
		if over := used.minus(b.newOver).beyond(t.limit).ofKinds(added); over != (Amount{}) {
			b.addFinding(Limit, g.cause,
				"with reservation %d of %s, %s and the agents below it have settled and hold %s, and entry %d has set their "+
					"limit to %s",
				g.Reservation, g.at.at, of, used.text(over), t.limited, t.limit.text(over))
		}
	}
}

// usedWithin is what an agent and those below it have settled and hold, with the charges for their delegations.
func (b *ledger) usedWithin(of string) (sum Amount) {
	for at, a := range b.agents {
		if isWithin(at.Agent(), of) {
			sum = sum.plus(a.settled).plus(a.held()).plus(a.charged)
		}
	}
	return sum
}

// definitionOf is the definition of an agent in the run; the zero value if the logs do not have it.
func (b *ledger) definitionOf(at mailbox.Address) (d definitionBody) {
	l := b.v.logs[at]
	if l == nil || l.task == nil {
		return d
	}
	for _, d := range b.super.opened[0].Definitions {
		if d.Name == l.task.Task.Name {
			return d
		}
	}
	return d
}
