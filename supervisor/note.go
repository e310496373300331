package supervisor

import (
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/budget"
)

// Data of the supervisor's notes.
type (
	// RunStarted is run.started.
	RunStarted struct {
		Goal   string `json:"goal,omitempty"`
		Root   string `json:"root"`
		Model  string `json:"model"`
		Limits Limits `json:"limits"`
		Caller string `json:"caller,omitempty"`
		Trace  string `json:"trace,omitempty"`
		Policy int    `json:"policy_version"`
		Past   *Past  `json:"past,omitempty"` // the history that it begins with
	}
	// AgentSpawned is agent.spawned.
	AgentSpawned struct {
		Agent  agent.ID `json:"id"`
		Name   string   `json:"name"`
		Parent agent.ID `json:"parent,omitempty"`
		Depth  int      `json:"depth"`
		Pool   string   `json:"pool,omitempty"` // "" is the default one
	}
	// BudgetNote is budget.reserved, budget.settled, budget.denied, budget.exhausted,
	// budget.changed and budget.overrun.
	BudgetNote struct {
		Agent    agent.ID     `json:"id,omitempty"`
		Lease    int          `json:"lease,omitempty"`
		Limit    budget.Limit `json:"limit"`
		Used     int64        `json:"used"`
		Reserved int64        `json:"reserved"`
		Kept     int64        `json:"kept"`
		Unknown  int64        `json:"charged_unknown"`
		Overrun  int64        `json:"overrun"`
		Frozen   bool         `json:"frozen,omitempty"`
		Why      agent.Reason `json:"why,omitempty"`
	}
	// PolicyApplied is policy.applied.
	PolicyApplied struct {
		Version int `json:"version"`
		Rules   int `json:"rules"`
	}
)

// Notes tells what a step did: a pure function, like agent.Notes.
func Notes(before State, e Event, after State, effects []Effect) []agent.Note {
	var list []agent.Note
	add := func(kind string, data any) { list = append(list, agent.Note{Kind: kind, Data: data}) }
	money := func(kind string, id agent.ID, lease int, why agent.Reason) {
		p := after.Pool
		add(kind, BudgetNote{Agent: id, Lease: lease, Limit: p.Limit, Used: p.Spent.Tokens, Reserved: p.Held.Tokens,
			Kept: p.Kept.Tokens, Unknown: p.Unknown.Tokens, Overrun: p.Overrun.Tokens, Frozen: after.Frozen, Why: why})
	}
	if before.Phase == "" && after.Phase != "" && after.Run.Run != "" {
		r := after.Run
		add("run.started", RunStarted{Goal: r.Goal, Root: r.Root, Model: r.Model.Name, Limits: r.Limits, Caller: r.Caller,
			Trace: r.Trace, Policy: r.Policy.Version, Past: r.Past})
	}
	switch f := e.Fact.(type) {
	case agent.Settle:
		if before.Pool != after.Pool {
			money("budget.settled", e.From, f.Lease, "")
		}
		if over := after.Pool.Overrun; over != before.Pool.Overrun {
			money("budget.overrun", e.From, f.Lease, "")
		}
	case PolicySet:
		add("policy.applied", PolicyApplied{f.Policy.Version, len(f.Policy.Rules)})
	case LimitSet:
		money("budget.changed", "", 0, "")
	case GivenUp:
		if after.Live < before.Live {
			add("warning.raised", agent.Warned{What: "given up: " + string(f.Agent), Why: f.Why, Now: true, Live: after.Live})
		}
	case agent.Canceled:
		if after.Cancel != before.Cancel {
			add("warning.raised", agent.Warned{What: "cancel", Why: f.Why, Now: f.Now, Live: after.Live})
		}
	}
	for _, fx := range effects {
		tell, ok := fx.(Tell)
		if !ok {
			continue
		}
		switch f := tell.Fact.(type) {
		case agent.Submitted:
			m, _ := after.Member(f.Task.ID)
			add("agent.spawned", AgentSpawned{Agent: f.Task.ID, Name: f.Task.Name, Parent: f.Task.Parent, Depth: f.Task.Depth, Pool: m.Pool})
		case agent.Granted:
			money("budget.reserved", tell.To, f.Lease, "")
			if f.Closing && f.Why != "" {
				money("budget.exhausted", tell.To, f.Lease, f.Why)
			}
		case agent.Denied:
			money("budget.denied", tell.To, f.Lease, f.Why)
		}
	}
	if before.Phase != Over && after.Phase == Over {
		add("run.finished", after.Result())
	}
	return list
}
