package client

import "github.com/troupe-run/troupe/agent/spec"

// BudgetRequest replaces a live run's limits: all of them, or with Patch those that are not
// zero. With Freeze it replaces none, but the run grants only closing turns.
// With Agent it changes those limits of tokens, money and tool calls of that agent and the agents below it together
// that are not zero. Freeze then makes these agents wait at their next turn, until Unfreeze; the others go on.
type BudgetRequest struct {
	RunID   string         `json:"run_id"`
	Request string         `json:"request_id"`
	Limits  spec.RunLimits `json:"limits"`
	Patch   bool           `json:"patch,omitempty"`
	Freeze  bool           `json:"freeze,omitempty"`
	By      string         `json:"by,omitempty"`    // the name of the user, for the audit log
	Agent   string         `json:"agent,omitempty"` // with those below it; "": the run

	Unfreeze bool `json:"unfreeze,omitempty"`
}
