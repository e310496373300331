package event

import (
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
)

// RunStarted is run.started.
type RunStarted struct {
	Goal   string              `json:"goal,omitempty"`
	Root   string              `json:"root"`
	Model  string              `json:"model"`
	Limits spec.RunLimits      `json:"limits"`
	Caller string              `json:"caller,omitempty"`
	Trace  string              `json:"trace,omitempty"`
	Policy int                 `json:"policy_version"`
	Past   *spec.HistoryOrigin `json:"past,omitempty"` // the history that it begins with
}

// AgentSpawned is agent.spawned.
type AgentSpawned struct {
	Agent  spec.ID `json:"id"`
	Name   string  `json:"name"`
	Parent spec.ID `json:"parent,omitempty"`
	Depth  int     `json:"depth"`
	Pool   string  `json:"pool,omitempty"` // "" is the default one
}

// BudgetChanged is budget.reserved, budget.settled, budget.denied, budget.exhausted,
// budget.changed and budget.overrun.
type BudgetChanged struct {
	Agent       spec.ID      `json:"id,omitempty"`
	Reservation int          `json:"reservation,omitempty"`
	Limit       budget.Limit `json:"limit"`
	Used        int64        `json:"used"`
	Reserved    int64        `json:"reserved"`
	Ahead       int64        `json:"ahead,omitempty"` // part of Reserved: held for attempts that begin without a reservation of their own
	Kept        int64        `json:"kept"`
	Unknown     int64        `json:"charged_unknown"`
	Overrun     int64        `json:"overrun"`
	Frozen      bool         `json:"frozen,omitempty"`
	Why         spec.Reason  `json:"why,omitempty"`
}

// PolicyApplied is policy.applied.
type PolicyApplied struct {
	Version int `json:"version"`
	Rules   int `json:"rules"`
}
