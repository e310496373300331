package agents

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/node"
	"github.com/troupe-run/troupe/internal/runspec"
	"github.com/troupe-run/troupe/internal/trust"
)

// noteCutRules notes which rules of an agent file have no effect below the agents that may delegate to its agent, in a
// run here with the rules of the user.
func (cs *Commands) noteCutRules(g Sources, name, path string) (notes []agentfile.Note) {
	o, _, err := PreviewOwnRun(cs.Sessions, g, "")
	if err != nil {
		return nil // findTrifectas reports why a run here is not known
	}
	for _, c := range runspec.FindCutRules(o) {
		if c.Agent == name {
			notes = append(notes, agentfile.Note{Path: path, Text: c.String()})
		}
	}
	return notes
}

// noteIgnored notes which parts of an agent file a run here ignores, because anyone may have written the file: commands,
// rules that allow, a mode, servers. A run that names the directory of the file with --agents has them.
func (cs *Commands) noteIgnored(g Sources, d agentfile.Definition) (notes []agentfile.Note) {
	o, _, err := PreviewOwnRun(cs.Sessions, g, d.Name)
	in, known := definitionOf(o, d.Name)
	if err != nil || !known || trust.ResolvePath(in.Source) != trust.ResolvePath(d.Path) {
		return nil // its problems are reported, or another file of this name counts
	}
	cfg, err := previewOwnConfig(cs.Sessions)
	if err != nil {
		return nil
	}
	ignored, err := node.PreviewIgnored(cfg, previewRequest(g, "", d.Name))
	if err != nil {
		return nil
	}
	for _, i := range ignored {
		if i.Path == in.Source && i.Agent == d.Name {
			notes = append(notes, agentfile.Note{Path: d.Path, Text: "ignored in a run here: " + i.Parts})
		}
	}
	return notes
}

// noteRights notes for each agent which of its rules match no tool of its own, and which tools it loses. named: the files
// were named, and others of their directories count as given by --agents.
func (cs *Commands) noteRights(g Sources, defs []agentfile.Definition, named bool) (notes []console.Remark) {
	for _, d := range defs {
		path, err := filepath.Abs(d.Path)
		if err != nil {
			continue
		}
		for _, n := range cs.noteIgnored(g, d) {
			notes = append(notes, console.Remark{Path: n.Path, Text: n.Text})
		}
		own := g
		if path = trust.ResolvePath(path); named {
			own.Agents = filepath.Dir(path)
		}
		o, _, err := PreviewOwnRun(cs.Sessions, own, d.Name)
		if in, known := definitionOf(o, d.Name); err != nil || !known || trust.ResolvePath(in.Source) != path {
			continue // its problems are reported, or another file of this name counts
		}
		for _, text := range runspec.RightsNotes(o, d.Name) {
			notes = append(notes, console.Remark{Path: d.Path, Line: d.KeyLine("tools", "x-troupe", "disallowedTools"), Text: text})
		}
		for _, n := range cs.noteCutRules(own, d.Name, d.Path) {
			notes = append(notes, console.Remark{Path: n.Path, Text: n.Text})
		}
	}
	return notes
}

// noteCutOffTools notes which tools of an agent no run gives it below an agent that names it as a delegate: the parent
// does not have them. It looks at the checked files, and at the others of the roster as far as they are above or below one.
func noteCutOffTools(checked []agentfile.Definition, all Roster) (notes []console.Remark) {
	defs := slices.Clone(checked)
	isKnown := func(name string) bool {
		return slices.ContainsFunc(checked, func(d agentfile.Definition) bool { return d.Name == name })
	}
	for _, i := range all.Agents {
		if i.def != nil && i.Hidden == "" && !isKnown(i.Name) {
			defs = append(defs, *i.def)
		}
	}
	for _, parent := range defs {
		for _, child := range defs {
			if !slices.Contains(parent.Delegates, child.Name) || !isKnown(parent.Name) && !isKnown(child.Name) {
				continue
			}
			if cut := agentfile.ToolsCutOff(parent, child); len(cut) > 0 {
				notes = append(notes, console.Remark{Path: child.Path, Line: child.KeyLine("tools", "permission"),
					Text: "below " + parent.Name + " the agent does not have " + strings.Join(cut, ", ") + ": " + parent.Name + " delegates to it and does not have that (" + parent.Path + ")"})
			}
		}
	}
	return notes
}
