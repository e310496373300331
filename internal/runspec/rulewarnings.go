package runspec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/mcpclient"
	"github.com/troupe-run/troupe/internal/permission"
	"github.com/troupe-run/troupe/internal/toolset"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// fromFlag begins the place of a rule that the request itself brings: it is about this run, and so about
// its MCP servers and agents.
const fromFlag = "--"

// warnUnmatchedRules warns about rules of the request, of the directory and of agent files that can match no call: a
// rule that denies or asks about a name that nothing has protects nothing. The rules of the operator and of the user
// are for runs of all directories, and may be about tools that this one does not have.
func warnUnmatchedRules(req acceptedRequest, tools []model.ToolSpec, defs []supervisor.Definition) (warnings []string) {
	rules := listRules(req.permissions)
	if s := req.settings; s != nil && s.SharedErr == nil && s.File != config.UserFile() {
		rules = slices.Concat(rules, s.Shared.Permissions.Ask, s.Shared.Permissions.Deny) // the others do not count
	}
	there := toolset.ToolNames(tools)
	var agents []string
	for _, d := range defs {
		agents = append(agents, d.Name)
		if d.Permissions != nil {
			rules = slices.Concat(rules, listRules(*d.Permissions))
		}
	}
	for _, r := range rules {
		parsed, err := permission.Parse(r.Text)
		if err != nil {
			continue // it is refused where it is read
		}
		why := whyUnmatched(parsed.Tool(), strings.HasPrefix(r.From, fromFlag), there)
		if name, ok := parsed.Agent(); ok && why == "" && strings.HasPrefix(r.From, fromFlag) && !slices.Contains(agents, name) {
			why = "no agent of this run is called " + name
			if near := config.NearestName(name, agents); near != "" {
				why += "; did you mean " + near + "?"
			}
		}
		text := fmt.Sprintf("the rule %.200s of %s matches no call: %s", r.Text, r.From, why)
		if why != "" && !slices.Contains(warnings, text) {
			warnings = append(warnings, text)
		}
	}
	return warnings
}

func listRules(p spec.Permissions) []spec.PermissionRule {
	return slices.Concat(p.Allow, p.Ask, p.Deny, p.Only)
}

// whyUnmatched says why a rule about a tool matches no call; "": it may match one.
func whyUnmatched(name string, ofRequest bool, there []string) string {
	isThere := slices.ContainsFunc(there, func(tool string) bool { return permission.IsAbout(name, tool) })
	switch {
	case isThere, agentfile.IsBuiltin(name):
		return ""
	case mcpclient.IsToolName(name) && !ofRequest, strings.Contains(name, "*") && !ofRequest:
		return "" // the server may be one that this node does not have
	case agentfile.IsForeign(name):
		return fmt.Sprintf("troupe has no equivalent of %.80q", name)
	case strings.Contains(name, "*"):
		return fmt.Sprintf("no tool of this run is called like %.80q", name)
	}
	text := fmt.Sprintf("no tool of this run is called %.80q", name)
	if near := config.NearestName(name, there); near != "" {
		return text + "; did you mean " + near + "?"
	}
	return text + agentfile.SuggestTool(name)
}
