package host

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/troupe-run/troupe/agentfile"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/prompt"
	"github.com/troupe-run/troupe/supervisor"
	"github.com/troupe-run/troupe/tool/skill"
)

// skillPlaces are where the skills of an agent are: in the directory of the run,
// and where the user of this node keeps them. Those go first if the agent's file,
// source, is no part of the directory: a repository that is looked at must not
// put words of its own into the user's agents.
func (h *Host) skillPlaces(dir, source string) skill.Places {
	home, config := h.cfg.Env("HOME"), h.cfg.Env("XDG_CONFIG_HOME")
	if config == "" && home != "" {
		config = filepath.Join(home, ".config")
	}
	return skill.Places{Dir: dir, User: skill.UserPlaces(home, config), Mine: !brought(source, dir)}
}

// brought: a file came with the directory of the run. Of no file it did not.
func brought(file, dir string) bool {
	rel, err := filepath.Rel(dir, file)
	return dir != "" && file != "" && err == nil && filepath.IsLocal(rel)
}

// skilled gives an agent that names skills, or the tool, their descriptions in its
// prompt. Others are told nothing of them: what a directory says of itself gets
// into no prompt by itself.
func (h *Host) skilled(o *supervisor.Opened, def *supervisor.Definition, d agentfile.Definition, a *client.RunAccepted) error {
	named := slices.Contains(def.Tools, skill.Name)
	if !named && len(d.Skills) == 0 {
		return nil
	}
	found, problems := skill.Find(h.skillPlaces(o.Workspace, d.Path))
	wrong := make([]string, len(problems))
	for i, p := range problems {
		wrong[i] = p.Error()
	}
	a.Notes = append(a.Notes, few(wrong, NotesAbout, "skills are left out")...)
	if len(d.Skills) > 0 {
		for _, name := range d.Skills {
			if !slices.ContainsFunc(found, func(s skill.Skill) bool { return s.Name == name }) {
				a.Notes = append(a.Notes, fmt.Sprintf("%s: there is no skill %q", d.Path, name))
			}
		}
		found = slices.DeleteFunc(found, func(s skill.Skill) bool { return !slices.Contains(d.Skills, s.Name) })
	}
	if len(found) == 0 {
		return nil
	}
	var hidden []string
	for _, s := range found {
		if s.Hides != "" {
			hidden = append(hidden, fmt.Sprintf("%s: the skill %s is that in %s; the one in %s is not used", d.Path, s.Name, s.Dir, s.Hides))
		}
	}
	a.Notes = append(a.Notes, few(hidden, NotesAbout, "skills have the name of another")...)
	if def.Tools != nil && !named {
		def.Tools = append(def.Tools, skill.Name)
	}
	if specOf(o.Tools, skill.Name) < 0 {
		t, err := skill.Tool(skill.Places{})
		if err != nil {
			return fmt.Errorf("host: %w", err)
		}
		o.Tools = append(o.Tools, t.Spec())
	}
	p, err := prompt.Compose([]prompt.Layer{{Name: "role", Content: def.System, Priority: prompt.Role},
		{Name: "skills", Content: skill.Prompt(found), Priority: prompt.Skills}})
	if err != nil {
		return fmt.Errorf("host: agent %s: %w", d.Name, err)
	}
	def.System = p.Stable
	return nil
}
