package toolset

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/permission"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/internal/toolname"
	"github.com/troupe-run/troupe/model"
)

// LoopTools are the names of tools that the loop itself serves.
var LoopTools = slices.Concat([]string{toolname.Delegate, agent.HandoffSpec().Name, agent.SendSpec().Name, agent.AskSpec().Name, agent.DeclareSpec().Name},
	ToolNames(agent.JournalTools()), ToolNames(agent.BacklogTools()))

// ToolNames are the names of tools.
func ToolNames(specs []model.ToolSpec) []string {
	list := make([]string, len(specs))
	for i, s := range specs {
		list[i] = s.Name
	}
	return list
}

// ClassifyTools applies settings about tools that come from outside the tools. The operator's
// rules decide the class of a tool. The file of the working directory may come from anyone,
// with the rest of that directory, so it can only lower trust, as any hint can. settings
// are those of the directory; nil without one.
func (b *Builder) ClassifyTools(tools []model.ToolSpec, settings *agentfile.DirectorySettings) (classified []model.ToolSpec, warnings []string, err error) {
	var local []agentfile.ToolRule
	var file string
	if settings != nil {
		if local, file, err = settings.Shared.Tools, settings.File, settings.SharedErr; err != nil {
			return nil, nil, refuse.Bad("`troupe config validate` shows the errors of the file", "%s: %s", config.FileName, b.cfg.Trust.DescribeErrors(err))
		}
	}
	tools = slices.Clone(tools)
	note := func(format string, args ...any) { warnings = append(warnings, fmt.Sprintf(format, args...)) }
	apply := func(where string, rules []agentfile.ToolRule, set func(model.ToolSpec, agentfile.ToolRule) model.ToolSpec) {
		for _, r := range rules {
			isOf := func(s model.ToolSpec) bool { return s.Name == r.Name }
			if server, all := strings.CutSuffix(r.Name, "*"); all && strings.HasPrefix(server, toolname.MCPPrefix) {
				isOf = func(s model.ToolSpec) bool { return strings.HasPrefix(s.Name, server) }
			}
			switch {
			case !slices.ContainsFunc(tools, isOf):
				note("%s: this run has no tool %s", where, r.Name)
			case slices.Contains(LoopTools, r.Name) && r.Class != "":
				note("%s: the class of %s is the loop's own", where, r.Name)
			default:
				for i, s := range tools {
					if isOf(s) {
						tools[i] = set(s, r)
					}
				}
			}
		}
	}
	apply("tools of the node", b.cfg.Rules, func(s model.ToolSpec, r agentfile.ToolRule) model.ToolSpec {
		if r.Class != "" {
			s.Class = r.Class
		}
		if r.Data != "" {
			s.Data = r.Data
		}
		s.Poll = s.Poll || r.Poll
		return s
	})
	apply(file, local, func(s model.ToolSpec, r agentfile.ToolRule) model.ToolSpec {
		if r.Class != "" && s.Class.Stricter(r.Class) != r.Class {
			note("%s: %s stays %s; only the user's own %s can trust it more", file, r.Name, s.Class, config.FileName)
		}
		if r.Allow != nil || r.Private != nil || r.Read != nil || r.Git || r.Timeout != 0 {
			note("%s: ignored: what it allows %s; only the user's own %s can allow it", file, r.Name, config.FileName)
		}
		if r.Data != "" { // it adds to what the tool does, and takes nothing away
			s.Data = permission.JoinData(permission.DataOf(s, false, false).String(), r.Data)
		}
		s.Class = s.Class.Stricter(r.Class)
		s.Poll = s.Poll || r.Poll
		return s
	})
	return tools, warnings, nil
}
