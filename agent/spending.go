package agent

import (
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/model"
)

// spending is what an agent has used so far: of its own limits, and of the budget of its run.
type spending struct {
	Turn      int // turns taken, the closing turn not counted
	ToolCalls int // tool calls run in all
	Usage     model.Usage
	Spent     budget.Amount
	ModelMS   int64
	ToolMS    int64
	Foreign   int // calls of agents of other programs
}

// usedUpCalls reports whether the agent's own limit of tool calls is used up: the next turn is the closing one.
func (u spending) usedUpCalls(l *spec.Limits) bool { return l.Calls > 0 && u.ToolCalls >= l.Calls }

// usedUpTurns reports whether the agent has taken all its turns: the next one is the closing one.
func (u spending) usedUpTurns(l *spec.Limits) bool { return u.Turn >= l.Turns }

// callsLeft is how many tool calls the next reply may make.
func (u spending) callsLeft(l *spec.Limits) int64 {
	if l.Calls == 0 {
		return int64(l.ReplyCalls)
	}
	return min(int64(l.ReplyCalls), int64(max(0, l.Calls-u.ToolCalls)))
}

// withReply adds what a reply has used, which the provider reported.
func (u spending) withReply(usage model.Usage, cost budget.Amount) spending {
	u.Usage, u.Spent = u.Usage.Add(usage), u.Spent.Plus(cost)
	return u
}
