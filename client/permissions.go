package client

import (
	"context"

	"github.com/troupe-run/troupe/agent/spec"
)

// PermissionsRequest takes rights from a live agent and the agents below it, from their next call on. Without a change it asks
// for the permissions of the run.
type PermissionsRequest struct {
	RunID   string `json:"run_id"`
	Request string `json:"request_id,omitempty"`
	// Agent is the agent's id; "": the root, and so all agents of the run.
	Agent string   `json:"agent,omitempty"`
	Mode  string   `json:"mode,omitempty"` // stricter than the one that holds
	Ask   []string `json:"ask,omitempty"`  // rules, such as Bash(git push:*)
	Deny  []string `json:"deny,omitempty"`
	By    string   `json:"by,omitempty"` // the name of the user, for the audit log
}

// Changes reports whether the request changes anything.
func (r PermissionsRequest) Changes() bool { return r.Mode != "" || len(r.Ask)+len(r.Deny) > 0 }

// RunPermissions are the permissions of a run: what it began with, and what was taken from its agents since.
type RunPermissions struct {
	Run string `json:"run_id"`
	// Permissions are those of all agents; nil: a release without permissions began the run.
	Permissions *spec.Permissions `json:"permissions"`
	// Definitions are the permissions that definitions add.
	Definitions map[string]spec.Permissions `json:"definitions,omitempty"`
	// AddedRules are rules that people have added with answers (--always run): they allow what no rule denies or asks about.
	AddedRules []spec.PermissionRule `json:"added_rules,omitempty"`
	Narrowings []Narrowing           `json:"narrowings"`
	Agents     []AgentMode           `json:"agents"`
	// AgentsLeftOut is how many agents the list does not hold, because there are too many: the deepest.
	AgentsLeftOut int `json:"agents_left_out,omitempty"`
}

// Narrowing is what was taken from an agent and the agents below it.
type Narrowing struct {
	Agent spec.ID `json:"agent"`
	spec.Narrowing
	By string `json:"by,omitempty"`
}

// AgentMode is the mode that decides about the calls of an agent that no rule fits: the strictest of its own and those above it.
type AgentMode struct {
	ID    spec.ID             `json:"id"`
	Name  string              `json:"name"`
	Depth int                 `json:"depth"`
	Mode  spec.PermissionMode `json:"mode"`
	Ended bool                `json:"ended,omitempty"`
}

// Permissions returns the permissions of a run.
func Permissions(ctx context.Context, c *Client, run string) (p RunPermissions, err error) {
	err = c.askNode(ctx, "permissions", PermissionsRequest{RunID: run}, &p)
	return p, err
}

// NarrowPermissions takes rights from a live agent and the agents below it. The same request may be sent again.
func NarrowPermissions(ctx context.Context, c *Client, r PermissionsRequest) error {
	r.Request = orNew(r.Request)
	return c.askNode(ctx, "permissions", r, nil)
}

// NarrowPermissionsOn is NarrowPermissions by a node of a machine, where the links in the paths of rules are followed.
func NarrowPermissionsOn(ctx context.Context, c *Client, machine string, r PermissionsRequest) error {
	subject, err := c.names.MachineCommand("permissions", machine)
	if err != nil {
		return err
	}
	r.Request = orNew(r.Request)
	return c.askAt(ctx, subject, "permissions", r, nil)
}
