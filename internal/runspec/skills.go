package runspec

import (
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/prompt"
	"github.com/troupe-run/troupe/internal/toolset"
	"github.com/troupe-run/troupe/internal/toolset/skill"
	"github.com/troupe-run/troupe/supervisor"
)

// addSkills adds the descriptions of skills to the prompt of an agent that names skills or
// the skill tool. Other agents get none: text from a directory enters a prompt only if the
// agent asks for it.
func (r *agentResolver) addSkills(t agentSet, def supervisor.Definition, d agentfile.Definition) (agentSet, supervisor.Definition, error) {
	named := slices.Contains(def.Tools, skill.Name)
	if !named && len(d.Skills) == 0 {
		return t, def, nil
	}
	found, problems := skill.Find(r.cfg.Tools.SkillPlaces(r.req.workspace, d.Path))
	wrong := make([]string, len(problems))
	for i, p := range problems {
		wrong[i] = p.Error()
	}
	t.warnings = append(t.warnings, toolset.LimitNotes(wrong, toolset.NotesPerTopic, "skills are left out")...)
	if len(d.Skills) > 0 {
		var missing []string
		for _, name := range d.Skills {
			if !slices.ContainsFunc(found, func(s skill.Skill) bool { return s.Name == name }) {
				missing = append(missing, fmt.Sprintf("%s: there is no skill %q", d.Path, name))
			}
		}
		t.warnings = append(t.warnings, toolset.LimitNotes(missing, toolset.NotesPerTopic, "skills are missing")...)
		found = slices.DeleteFunc(found, func(s skill.Skill) bool { return !slices.Contains(d.Skills, s.Name) })
	}
	if len(found) == 0 {
		return t, def, nil
	}
	var hidden []string
	for _, s := range found {
		if s.Hides != "" {
			hidden = append(hidden, fmt.Sprintf("%s: the skill %s is that in %s; ignored: the one in %s", d.Path, s.Name, s.Dir, s.Hides))
		}
	}
	t.warnings = append(t.warnings, toolset.LimitNotes(hidden, toolset.NotesPerTopic, "skills have the name of another")...)
	if def.Tools != nil && !named {
		def.Tools = append(def.Tools, skill.Name)
	}
	if toolset.IndexTool(t.tools, skill.Name) < 0 {
		made, err := skill.Tool(skill.Places{})
		if err != nil {
			return t, def, fmt.Errorf("runspec: %w", err)
		}
		t.tools = append(t.tools, made.Spec())
	}
	p, err := prompt.Compose([]prompt.Layer{{Name: "role", Content: def.System, Priority: prompt.RolePriority},
		{Name: "skills", Content: skill.Prompt(found), Priority: prompt.SkillsPriority}})
	if err != nil {
		return t, def, fmt.Errorf("runspec: agent %s: %w", d.Name, err)
	}
	def.System = p.Stable
	return t, def, nil
}
