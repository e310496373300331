package runimport

import (
	"maps"
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control/bounds"
	"github.com/troupe-run/troupe/internal/permission"
	"github.com/troupe-run/troupe/internal/policy"
	"github.com/troupe-run/troupe/internal/refuse"
	recorded "github.com/troupe-run/troupe/internal/replay"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// RecordedChange is a change of a run after its first entry. ImportConfig.CheckRestoredChange refuses one that no request
// could make here; a node with CheckRestored has it, too.
type RecordedChange struct {
	// Limits were set while the run worked; nil: the change is about a model.
	Limits *supervisor.LimitSet
	// Tools were added to an agent; nil: the change is about something else.
	Tools []model.ToolSpec
	// Model is the route of a model that the run goes on with, and Nano its limit in money; 0: none.
	Model string
	Nano  int64
}

// checkChanges refuses policies and limits that no request could set.
func (c *runFileCheck) checkChanges(opened supervisor.Opened, named client.RunRequest, entries []mailbox.Message) error {
	for _, m := range entries {
		e, err := mailbox.Decode(m.Data)
		if err != nil {
			continue
		}
		for _, item := range e.Items {
			if err := c.checkContextSet(opened, named, e, m.To, item); err != nil {
				return err
			}
			if e.From != "" || m.To.Agent() != mailbox.Super {
				continue
			}
			if err := c.checkChange(opened, named, item); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkContextSet refuses tools that were added to an agent, if no client could add them here. It reads the changes
// in the logs of agents, too: a supervisor passes them on. A client puts only layers there.
func (c *runFileCheck) checkContextSet(opened supervisor.Opened, named client.RunRequest, e mailbox.Entry, at mailbox.Address, item mailbox.Item) error {
	var f agent.ContextSet // supervisor.ContextSet has tools in the same field
	if item.Kind != f.Kind() || mailbox.Unmarshal(item.Body, &f) != nil {
		return nil
	}
	if e.From == "" && at.Agent() != mailbox.Super && len(f.AddTools)+len(f.Commands)+len(f.Servers)+len(f.RemoveTools) > 0 {
		return badFile(dumpHint, "the log of %s changes its tools, and no client can do that", at)
	}
	if len(f.AddTools) == 0 {
		return nil
	}
	return c.cfg.CheckRestoredChange(opened, named, RecordedChange{Tools: f.AddTools})
}

func (c *runFileCheck) checkChange(opened supervisor.Opened, named client.RunRequest, item mailbox.Item) error {
	var (
		rules   supervisor.PolicySet
		limits  supervisor.LimitSet
		subtree supervisor.SubtreeLimitSet
		rights  supervisor.PermissionsSet
	)
	switch {
	case item.Kind == rules.Kind() && mailbox.Unmarshal(item.Body, &rules) == nil:
		if _, err := policy.Compile(rules.Policy); err != nil {
			return badFile(refuse.PolicyHint, "a policy that was set while the run worked: %v", err)
		}
	case item.Kind == limits.Kind() && mailbox.Unmarshal(item.Body, &limits) == nil:
		if name, n := bounds.NegativeLimit(limits.Limits); n < 0 {
			return badFile(dumpHint, "limits that were set while the run worked: %s is %d", name, n)
		}
		return c.cfg.CheckRestoredChange(opened, named, RecordedChange{Limits: &limits})
	case item.Kind == subtree.Kind() && mailbox.Unmarshal(item.Body, &subtree) == nil:
		if err := subtree.Validate(); err != nil {
			return badFile(dumpHint, "limits of %s and below that were set while the run worked: %v", subtree.Agent, err)
		}
	case item.Kind == rights.Kind() && mailbox.Unmarshal(item.Body, &rights) == nil:
		if err := permission.CheckNarrowingBounds(rights.Rights); err != nil {
			return badFile(dumpHint, "rights of %s and below that were narrowed while the run worked: %v", rights.Agent, err)
		}
	}
	return nil
}

// checkModels refuses models that were set in the logs (agent.ModelSet), if the run goes on with them and a new run
// could not have them here. Those of its first entry were judged with it.
func (c *runFileCheck) checkModels(opened supervisor.Opened, named client.RunRequest, run *recorded.Run) error {
	if run.Super.Phase == supervisor.Over {
		return nil
	}
	routes := map[string]bool{}
	add := func(m *spec.Model) {
		if m != nil {
			routes[m.Name] = true
		}
	}
	add(&run.Super.Run.Model)
	add(run.Super.Run.LoopOptions.Context.Model)
	for _, s := range run.Agents {
		if s.Phase == agent.Done {
			continue
		}
		add(&s.Task.Model)
		add(s.Task.LoopOptions.Context.Model)
		if s.NextModel != nil {
			add(&s.NextModel.Model)
			add(s.NextModel.Summaries)
		}
	}
	for _, known := range opened.Models() {
		delete(routes, known)
	}
	for _, route := range slices.Sorted(maps.Keys(routes)) {
		if err := c.cfg.CheckRestoredChange(opened, named, RecordedChange{Model: route, Nano: run.Super.Pool.Limit.Nano}); err != nil {
			return err
		}
	}
	return nil
}
