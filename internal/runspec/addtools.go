package runspec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/internal/suggest"
	"github.com/troupe-run/troupe/internal/toolset"
	"github.com/troupe-run/troupe/internal/toolset/shell"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

const addToolsHint = "add a tool of the run, or one that a new run has only if it is named: `troupe tools list`"

// FindTools returns the tools that agents of a live run can be given, with their versions on this node: tools
// of the run, which an agent of it may lack, and the restricted tools (toolset.RestrictedTools), which a run
// has only if they are named.
func FindTools(b *Builder, o supervisor.Opened, names []string) (tools []model.ToolSpec, versions map[string]string, err error) {
	versions = map[string]string{}
	for _, name := range names {
		if slices.Contains(toolset.LoopTools, name) {
			return nil, nil, refuse.Bad(addToolsHint,
				"%s is a tool of the loop: the definition of an agent decides whether it has that", name)
		}
		if i := toolset.IndexTool(o.Tools, name); i >= 0 {
			tools = append(tools, o.Tools[i])
			continue
		}
		t, err := findNamedOnly(b, o, name)
		if err != nil {
			return nil, nil, err
		}
		tools, versions[spec.ToolVersion+name] = append(tools, t), toolVersion(t)
	}
	return tools, versions, nil
}

// findNamedOnly makes a tool that a run has only if it is named.
func findNamedOnly(b *Builder, o supervisor.Opened, name string) (t model.ToolSpec, err error) {
	switch {
	case !slices.Contains(toolset.RestrictedTools, name):
		known := append(toolset.ToolNames(o.Tools), toolset.RestrictedTools...)
		slices.Sort(known)
		hint := addToolsHint
		if near := suggest.Nearest(name, known); near != "" {
			hint = fmt.Sprintf("did you mean %s? Else: %s", near, addToolsHint)
		}
		return t, refuse.Bad(hint, "there is no tool %.80q for this run; there are: %s", name, strings.Join(known, ", "))
	case name == shell.Name && o.Workspace == "":
		return t, refuse.Bad("begin the run with --dir", "the run has no directory, so it can have no %s", name)
	}
	made, err := b.cfg.Tools.MakeTool(name, o.Workspace, "")
	if err != nil {
		return t, fmt.Errorf("runspec: tools: %w", err)
	}
	classified, _, err := b.cfg.Tools.ClassifyTools([]model.ToolSpec{made.Spec()}, nil)
	if err != nil {
		return t, err
	}
	return classified[0], nil
}

// CheckAddedTools refuses tools that were added to an agent of a recorded run, if no client could add them here.
func CheckAddedTools(b *Builder, o supervisor.Opened, tools []model.ToolSpec) error {
	here, _, err := FindTools(b, o, toolset.ToolNames(tools))
	if err != nil {
		return err
	}
	for i, t := range tools {
		if t.Class != here[i].Class || t.Schema != here[i].Schema {
			return refuse.Bad("restore it where the tool is the same",
				"the logs of %s add the tool %.80q, which is another one here", o.Run, t.Name)
		}
	}
	return nil
}
