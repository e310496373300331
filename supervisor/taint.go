package supervisor

import (
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/permission"
	"github.com/troupe-run/troupe/model"
)

// readsPrivateData reports whether a tool of the run reads private data: what one agent reads, it may tell another.
func readsPrivateData(o Opened) bool {
	if o.Permissions == nil || o.Permissions.Taint == "" {
		return false
	}
	return slices.ContainsFunc(o.Tools, func(t model.ToolSpec) bool {
		isCommand := slices.ContainsFunc(o.Commands, func(c spec.Command) bool { return c.Name == t.Name })
		return permission.DataOf(t, isCommand, false).Private
	})
}

// backlogTaint is the text from outside that an agent had read which wrote a text of the tasks that an answer shows.
func backlogTaint(s State, m Member, f agent.Backlog) *spec.Taint {
	for i, t := range s.backlog.tasks {
		isShown := f.Do == "list" && (f.Task == "" || f.Task == taskID(i)) || f.Do == "claim" && t.state == taskClaimed && t.holder == m.ID
		if isShown && t.tainted != nil {
			return t.tainted
		}
	}
	return nil
}
