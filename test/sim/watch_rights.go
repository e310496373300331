package sim

import (
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// watchRights compares the task of a child with the task of its parent: it has no
// tool, no way past a hook and no way out of a deny that its parent does not have.
func (s *sim) watchRights(after *supervisor.State, id spec.ID, t activation.OutboxMessage) {
	var f agent.Submitted
	if err := mailbox.Unmarshal(t.Body, &f); err != nil {
		s.fail("submitted: %v", err)
	}
	s.ledger.tasks[id] = f.Task
	c, _ := after.Member(id)
	p, born := after.Member(c.Parent)
	if id == spec.Root || !born {
		return
	}
	for _, right := range c.Rights {
		if !slices.Contains(p.Rights, right) {
			s.fail("%s may use %s, and its parent may not", id, right)
		}
	}
	for _, denied := range p.Deny {
		if !slices.Contains(c.Deny, denied) {
			s.fail("%s is not denied %s, and its parent is", id, denied)
		}
	}
	for _, h := range s.ledger.tasks[c.Parent].LoopOptions.Hooks {
		about := h.Point == spec.HookContext || h.Point == spec.HookStop || h.Point == spec.HookStopFailure || h.Of == spec.OfRoot
		if !about && !slices.Contains(f.Task.LoopOptions.Hooks, h) {
			s.fail("the hook %s at %s binds %s and not its child %s", h.Name, h.Point, c.Parent, id)
		}
	}
}
