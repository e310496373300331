package runspec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/mcpclient"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/internal/toolset"
	"github.com/troupe-run/troupe/internal/toolset/readresult"
	"github.com/troupe-run/troupe/internal/toolset/shell"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// toolGrants holds the tools of a run, and the definitions with their grants.
type toolGrants struct {
	tools       []model.ToolSpec
	servers     []spec.Server
	commands    []spec.Command
	definitions []supervisor.Definition
	warnings    []string
}

// findDefinition returns the definition of an agent; the zero value if it does not exist.
func (t toolGrants) findDefinition(name string) (d supervisor.Definition) {
	if i := definitionIndex(t.definitions, name); i >= 0 {
		d = t.definitions[i]
	}
	return d
}

// resolveTools lists the tools of the run and grants them to its agents.
func (b *Builder) resolveTools(req acceptedRequest, m modelSelection, in agentSet) (t toolGrants, err error) {
	t.commands = in.commands
	found, err := b.findServers(req, in)
	if err != nil {
		return t, err
	}
	t.servers, t.warnings = found.servers, found.warnings
	grants := grantServers(req, m, in, found)
	t.warnings = append(t.warnings, grants.warnings...)
	t.definitions = grants.definitions
	allowed, disallowed := refNames(agentfile.ParseToolRefs(grants.allowed)), disallowedTools(grants.disallowed)
	// A tool that is disallowed by name is denied to the root and to all agents below it.
	root := definitionIndex(t.definitions, in.root)
	t.definitions[root].Deny = slices.Concat(t.definitions[root].Deny, disallowed)
	t.definitions[root] = withAllowedTools(t.definitions[root], allowed)
	brought := slices.Concat(in.tools, found.tools)
	if t.tools, err = b.listTools(req, m.options, brought, handsOff(t.definitions)); err != nil {
		return t, err
	}
	restricted, err := b.grantRestricted(req, allowed, t)
	if err != nil {
		return t, err
	}
	t.tools, t.definitions = append(t.tools, restricted.tools...), restricted.definitions
	t = grantBacklog(allowed, t)
	if t, err = grantMemory(&b.cfg, t); err != nil {
		return t, err
	}
	t.definitions = grantDeclaring(t.definitions, req)
	unknown, err := checkToolNames(t.tools, slices.Concat(allowed, disallowed))
	if err != nil {
		return t, err
	}
	t.warnings = append(t.warnings, unknown...)
	isCut := func(s model.ToolSpec) bool {
		return len(allowed) > 0 && !slices.Contains(allowed, s.Name) && !(s.Name == declareName && hasFailureConditions(t.definitions, req)) || slices.Contains(disallowed, s.Name)
	}
	t.warnings = append(t.warnings, noteCutAgents(t, isCut)...)
	t.tools = slices.DeleteFunc(t.tools, isCut)
	classified, warnings, err := b.cfg.Tools.ClassifyTools(t.tools, req.settings)
	if err != nil {
		return t, err
	}
	t.tools, t.warnings = classified, append(t.warnings, warnings...)
	t.definitions = offerMemory(expandRights(t.definitions, t.tools), t.tools)
	if err := checkToolsLeft(req, t.definitions[root], t.tools); err != nil {
		return t, err
	}
	kept, warning, err := fitDefinitions(withPassedShell(t.definitions, in.root), grantedBytesMax, in.root, req.agents)
	if err != nil {
		return t, err
	}
	if t.definitions = kept; warning != "" {
		t.warnings = append(t.warnings, warning)
	}
	missing, err := checkEvidence(t.tools, t.definitions, in.required, m.options)
	t.warnings = append(t.warnings, toolset.LimitNotes(missing, teamNotesMax, "agents require results that no tool gives")...)
	return t, err
}

// listTools returns the tools of the directory, those of the loop, and those of the program
// and of agent files.
func (b *Builder) listTools(req acceptedRequest, options spec.LoopOptions, brought []model.ToolSpec, handsOff bool) ([]model.ToolSpec, error) {
	specs, err := b.cfg.Tools.DirectorySpecs(req.workspace)
	if err != nil {
		return nil, err
	}
	reader, err := b.cfg.Tools.ReaderSpec(slices.Concat(specs, brought))
	if err != nil {
		return nil, err
	}
	loop := []model.ToolSpec{agent.DelegateSpec(" Several calls in one reply run side by side.", true), agent.SendSpec()}
	if handsOff {
		loop = append(loop, agent.HandoffSpec())
	}
	if options.AskPeople {
		loop = append(loop, agent.AskSpec())
	}
	if options.DeclareFailure {
		loop = append(loop, agent.DeclareSpec())
	}
	if options.Journal {
		loop = append(loop, agent.JournalTools()...)
	}
	return slices.Concat(specs, loop, reader, brought), nil
}

// handsOff reports whether an agent of the run may hand off its conversation.
func handsOff(list []supervisor.Definition) bool {
	return slices.ContainsFunc(list, func(d supervisor.Definition) bool { return len(d.Handoffs) > 0 })
}

// withAllowedTools offers the root the tools that the request allows by name, also those that a built-in definition
// does not offer by itself.
func withAllowedTools(d supervisor.Definition, allowed []string) supervisor.Definition {
	if d.Offer == nil {
		return d
	}
	d.Offer = slices.Clone(d.Offer)
	for _, name := range allowed {
		if !slices.Contains(d.Offer, name) {
			d.Offer = append(d.Offer, name)
		}
	}
	return d
}

// checkToolsLeft refuses a run whose lists of tools leave its root agent none: the lists then name nothing that the
// agent and the run have in common, and an answer without any tool would pass for work.
func checkToolsLeft(req acceptedRequest, root supervisor.Definition, tools []model.ToolSpec) error {
	named := slices.DeleteFunc(slices.Clone(root.Tools), func(name string) bool { return name == readresult.Name })
	if len(req.AllowedTools) == 0 && (len(named) == 0 || req.workspace == "" && len(tools) > 0) {
		return nil
	}
	for _, s := range tools {
		if s.Name != readresult.Name && (root.Tools == nil || slices.Contains(named, s.Name)) &&
			(root.Offer == nil || slices.Contains(root.Offer, s.Name)) && !slices.Contains(root.Deny, s.Name) {
			return nil
		}
	}
	if len(req.AllowedTools) > 0 {
		return refuse.Bad("name tools that the agent has; `troupe tools list` shows the tools, and --dir gives the run those of a directory",
			"--allowed-tools %.200s leaves the agent %s no tool", strings.Join(req.AllowedTools, ","), root.Name)
	}
	return refuse.Bad("correct `tools` in its file, or leave the key out: then the agent has all tools; `troupe tools list` shows them",
		"the agent %s has none of the tools that its file names: %.200s", root.Name, strings.Join(named, ", "))
}

// noteCutAgents names the agents of files that lose tools of their own lists, because the request
// keeps the run from these.
func noteCutAgents(t toolGrants, isCut func(model.ToolSpec) bool) []string {
	var cut []string
	for _, s := range t.tools {
		if isCut(s) {
			cut = append(cut, s.Name)
		}
	}
	var agents []string
	all := toolset.ToolNames(t.tools)
	for _, d := range t.definitions {
		lost := slices.DeleteFunc(agentfile.ExpandNames(d.Tools, all), func(name string) bool {
			return !slices.Contains(cut, name) || name == readresult.Name
		})
		if len(lost) > 0 && d.Source != "" {
			agents = append(agents, fmt.Sprintf("%s (%.200s)", d.Name, strings.Join(lost, ", ")))
		}
	}
	if len(agents) == 0 {
		return nil
	}
	const shown = 5
	if more := len(agents) - shown; more > 0 {
		agents = append(agents[:shown], fmt.Sprintf("%d more", more))
	}
	return []string{"--allowed-tools or --disallowed-tools take tools from agents whose files name them: " + strings.Join(agents, ", ")}
}

func refNames(refs []agentfile.ToolRef) []string {
	list := make([]string, len(refs))
	for i, r := range refs {
		list[i] = r.Name
	}
	return list
}

// disallowedTools returns the tools that a request disallows as a whole.
func disallowedTools(disallowed []string) []string {
	_, whole := agentfile.DenyRules(agentfile.ParseToolRefs(disallowed), "")
	return refNames(whole)
}

// onlyReads stands in a definition's Deny for all tools that change something, until the
// tools of the run are known; no tool has this name.
const onlyReads = "class: not read"

// expandRights replaces names that match several tools by those tools.
func expandRights(defs []supervisor.Definition, tools []model.ToolSpec) []supervisor.Definition {
	all, defs := toolset.ToolNames(tools), slices.Clone(defs)
	for i, d := range defs {
		d.Tools, d.Deny = agentfile.ExpandNames(d.Tools, all), agentfile.ExpandNames(d.Deny, all)
		if k := slices.Index(d.Deny, onlyReads); k >= 0 {
			d.Deny = slices.Delete(slices.Clone(d.Deny), k, k+1)
			for _, s := range tools {
				if s.Class != model.Read && !slices.Contains(toolset.LoopTools, s.Name) {
					d.Deny = append(d.Deny, s.Name)
				}
			}
		}
		defs[i] = d
	}
	return defs
}

// checkEvidence refuses required evidence of tools that no agent of the run has: such a run
// could only end as incomplete. It only warns about an agent that the request does not name: a file that a directory
// brings must not end the runs of other agents.
func checkEvidence(tools []model.ToolSpec, defs []supervisor.Definition, required map[string]bool, options spec.LoopOptions) (warnings []string, err error) {
	for _, d := range defs {
		switch err := checkRequired(tools, "agent "+d.Name+": ", d.LoopOptions.Require); {
		case err != nil && required[d.Name]:
			return nil, err
		case err != nil:
			warnings = append(warnings, err.Error())
		}
	}
	return warnings, checkRequired(tools, "", options.Require)
}

func checkRequired(tools []model.ToolSpec, agent string, r spec.Require) error {
	for _, e := range r.Evidence {
		if toolset.IndexTool(tools, e.Tool) >= 0 {
			continue
		}
		hint := "`troupe tools list` shows the tools"
		if near := config.NearestName(e.Tool, toolset.ToolNames(tools)); near != "" {
			hint = "did you mean " + near + "?"
		}
		return refuse.Bad(hint, "%sa result of %s is required, and there is no such tool", agent, e.Tool)
	}
	return nil
}

// checkToolNames refuses allowed or disallowed names that match no tool: a misspelled name would
// otherwise allow or forbid nothing. It only warns about tools of other programs, and of MCP servers,
// which may be down.
func checkToolNames(there []model.ToolSpec, named []string) (warnings []string, err error) {
	for _, name := range named {
		switch {
		case agentfile.LacksParenthesis(name):
			return nil, refuse.Bad(fmt.Sprintf("write %.80q", name+")"), "the \")\" of %.80q is missing", name)
		case toolset.IndexTool(there, name) >= 0, agentfile.IsBuiltin(name):
		case mcpclient.IsToolName(name), agentfile.IsForeign(name):
			warnings = append(warnings, fmt.Sprintf("no tool is called %.80q%s", name, agentfile.SuggestTool(name)))
		default:
			return nil, refuse.Bad("`troupe tools list` shows the tools; leave the name out, or correct it", "no tool is called %.80q%s", name, agentfile.SuggestTool(name))
		}
	}
	return warnings, nil
}

// directoryTools are the built-in tools that exist only with a directory.
var directoryTools = []string{shell.Name, "edit_file", "git_blame", "git_log", "git_numstat", "git_show", "glob", "grep", "list_dir", "read_file", "write_file"}

// warnMissingDirectory warns about tools of the root that do not exist, because the run has
// no directory.
func warnMissingDirectory(req acceptedRequest, t toolGrants, root string) []string {
	if req.workspace != "" {
		return nil
	}
	missing := slices.DeleteFunc(slices.Clone(t.findDefinition(root).Tools), func(name string) bool {
		return !slices.Contains(directoryTools, name) || toolset.IndexTool(t.tools, name) >= 0
	})
	if len(missing) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s names %s, which it does not have here: give the run a directory with --dir", root, strings.Join(missing, ", "))}
}
