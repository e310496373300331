package rulefiles

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/filechange"
	"github.com/troupe-run/troupe/internal/permission"
	"github.com/troupe-run/troupe/internal/schema"
	"github.com/troupe-run/troupe/internal/toolname"
	"github.com/troupe-run/troupe/internal/toolset/builtin"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// findRefusal returns why a tool refuses a call of the root whatever the rules decide, as far as its arguments alone show
// it: their form, a path outside of the directory, an agent that does not exist. whole: all arguments are given.
func findRefusal(o supervisor.Opened, tool, args string, whole bool) string {
	if i := slices.IndexFunc(o.Tools, func(s model.ToolSpec) bool { return s.Name == tool }); whole && i >= 0 {
		if why := checkArguments(o.Tools[i].Schema, args); why != "" {
			return "the arguments do not fit its schema: " + why
		}
	}
	var a struct{ Path, Agent string }
	if json.Unmarshal([]byte(args), &a) != nil {
		return ""
	}
	switch {
	case slices.Contains(permission.WriteTools, tool), slices.Contains(permission.ReadTools, tool):
		return checkPath(o.Workspace, a.Path, slices.Contains(permission.WriteTools, tool))
	case tool == toolname.Delegate:
		return checkDelegate(o, a.Agent)
	}
	return ""
}

// checkArguments returns why arguments do not fit a schema.
func checkArguments(text, args string) string {
	s, err := schema.Compile(text)
	if err != nil {
		return ""
	}
	var decoded any
	if err := json.Unmarshal([]byte(args), &decoded); err != nil {
		return err.Error()
	}
	if err := s.Validate(decoded); err != nil {
		return err.Error()
	}
	return ""
}

// checkPath returns why no file tool takes a path, without a look at the disk.
func checkPath(dir, name string, writes bool) string {
	name, err := builtin.PathBelow(dir, name)
	if err != nil {
		return err.Error()
	}
	if writes && slices.ContainsFunc(strings.Split(name, "/"), filechange.IsGitName) {
		return name + " belongs to git itself and is never written"
	}
	return ""
}

// checkDelegate returns why the root of a run cannot delegate to an agent.
func checkDelegate(o supervisor.Opened, name string) string {
	if agentfile.IsForeignAgent(name) { // only the node of a run knows them
		return ""
	}
	var known []string
	for _, d := range o.Definitions {
		if known = append(known, d.Name); d.Name == name {
			return ""
		}
	}
	why := "there is no agent " + name
	if near := config.NearestName(name, known); near != "" {
		why += "; did you mean " + near + "?"
	}
	return why
}
