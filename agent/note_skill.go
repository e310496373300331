package agent

import (
	"slices"

	"github.com/troupe-run/troupe/model"
)

// skillTool is the tool that gives the text of a skill. The loop does with it as
// with any other, and tells observers which skill was read.
const skillTool = "skill"

// SkillLoaded is skill.loaded: the agent has read the text of a skill.
type SkillLoaded struct {
	Call  string `json:"call"`
	Skill string `json:"skill"`
	Bytes int    `json:"bytes"`
}

// loaded tells of a skill that was read.
func (n *notes) loaded(s State, c Call, r model.ToolResult) {
	command := func(known Command) bool { return known.Name == skillTool }
	if c.Name != skillTool || r.Error || slices.ContainsFunc(s.Task.Commands, command) {
		return
	}
	var args struct{ Name string }
	decode(c.Args, &args)
	n.add("skill.loaded", SkillLoaded{Call: r.Call, Skill: clip(args.Name, nameShown), Bytes: len(r.Text)})
}
