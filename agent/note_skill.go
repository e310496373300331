package agent

import (
	"slices"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/history"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
)

// skillTool is the tool that returns the text of a skill. The loop runs it like
// any other tool, and tells observers which skill was read.
const skillTool = "skill"

// loaded notes a skill that was read.
func (n *notes) loaded(s State, c Call, r model.ToolResult) {
	command := func(known spec.Command) bool { return known.Name == skillTool }
	if c.Name != skillTool || r.Error || slices.ContainsFunc(s.Task.Commands, command) {
		return
	}
	var args struct{ Name string }
	decode(c.Args, &args)
	n.add(event.KindSkillLoaded, event.SkillLoaded{Call: r.Call, Skill: history.Clip(args.Name, history.NameBytesShown), Bytes: len(r.Text)})
}
