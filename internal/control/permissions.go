package control

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/control/bounds"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

const narrowHint = "`troupe permissions RUN` shows the modes and rules; see docs/permissions.md#narrower-rights-while-a-run-works"

// changePermissions serves the verb permissions: it narrows the rights of live agents, or shows them.
func (c *commander) changePermissions(ctx context.Context, r client.PermissionsRequest) (any, error) {
	if !r.Changes() {
		return c.readPermissions(ctx, r)
	}
	return c.narrowPermissions(ctx, r)
}

// narrowPermissions takes rights from a live agent and the agents below it.
func (c *commander) narrowPermissions(ctx context.Context, r client.PermissionsRequest) (any, error) {
	if err := refuseAgentProgram(ctx); err != nil {
		return nil, err
	}
	if r.Agent != "" {
		if err := names.CheckToken(r.Agent); err != nil {
			return nil, badNarrowing("agent: %v", err)
		}
	}
	if len(r.By) > policyByMax {
		return nil, badNarrowing("by has %d bytes, at most %d are allowed", len(r.By), policyByMax)
	}
	l, err := c.lookAtRun(ctx, r.RunID, r.Request)
	if err != nil {
		return nil, err
	}
	if l.Summary.Phase == "" {
		return nil, refuse.NoRun(r.RunID)
	}
	full, err := c.states.Replay(ctx, c.cfg.Post, r.RunID)
	if err != nil {
		return nil, err
	}
	if err := checkRequestsLeft(mailbox.At(r.RunID, mailbox.Super), full.Requests); err != nil {
		return nil, err
	}
	if at := foreignMachine(c.cfg, full.State.Run, r); at != "" {
		return struct{}{}, c.cfg.NarrowOn(ctx, requestOwner(ctx), at, r)
	}
	if c.cfg.ParseNarrowing == nil {
		return nil, badNarrowing("this node reads no rules")
	}
	f := supervisor.PermissionsSet{Agent: spec.ID(r.Agent), Request: r.Request, By: namedBy(r.By), ByOwner: requestOwner(ctx) != ""}
	if f.Rights, err = c.cfg.ParseNarrowing(full.State.Run, r); err != nil {
		return nil, err
	}
	if l.State() != client.RunFinished && !supervisor.IsNarrowedBy(full.State, r.Request) {
		if why := supervisor.CheckPermissions(full.State, f); why != "" {
			return nil, badNarrowing("%s", why)
		}
	}
	return c.appendToViewed(ctx, l, r.Request, "", "", f.Kind(), f)
}

// foreignMachine returns the machine of a run with a directory elsewhere if the request has rules: links in their paths lead to
// other paths here. "": this node reads the rules.
func foreignMachine(cfg *Config, o supervisor.Opened, r client.PermissionsRequest) string {
	machine, ok := strings.CutPrefix(o.NodePool, names.MachinePrefix)
	if !ok || len(r.Ask)+len(r.Deny) == 0 || cfg.NarrowOn == nil || o.NodePool == names.MachinePool(cfg.Machine) {
		return ""
	}
	return machine
}

func badNarrowing(format string, args ...any) error {
	return &client.Error{Code: client.CodeBad, Text: fmt.Sprintf(format, args...), Hint: narrowHint}
}

// readPermissions returns the permissions of a run.
func (c *commander) readPermissions(ctx context.Context, r client.PermissionsRequest) (any, error) {
	if _, err := c.lookup.findRun(ctx, r.RunID); err != nil {
		return nil, err
	}
	full, err := c.states.Replay(ctx, c.cfg.Post, r.RunID)
	if err != nil {
		return nil, err
	}
	if full.State.Phase == "" {
		return nil, refuse.NoRun(r.RunID)
	}
	return describePermissions(full.State, r.RunID), nil
}

func describePermissions(s supervisor.State, run string) client.RunPermissions {
	p := client.RunPermissions{Run: run, Permissions: s.Run.Permissions, AddedRules: s.AddedRules, Narrowings: []client.Narrowing{}, Agents: []client.AgentMode{}}
	for _, d := range s.Run.Definitions {
		if d.Permissions != nil {
			if p.Definitions == nil {
				p.Definitions = map[string]spec.Permissions{}
			}
			p.Definitions[d.Name] = *d.Permissions
		}
	}
	for _, n := range s.Narrowings {
		p.Narrowings = append(p.Narrowings, client.Narrowing{Agent: cmp.Or(n.Agent, spec.Root), Narrowing: n.Rights, By: n.By})
	}
	s.Members(func(m supervisor.Member) {
		p.Agents = append(p.Agents, client.AgentMode{ID: m.ID, Name: m.Name, Depth: m.Depth, Mode: supervisor.ModeOf(m), Ended: m.Done})
	})
	p.Agents, p.AgentsLeftOut = bounds.FitList(p.Agents, func(a client.AgentMode) int { return a.Depth })
	return p
}
