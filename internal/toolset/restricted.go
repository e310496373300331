package toolset

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/agentmemory"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/toolset/shell"
	"github.com/troupe-run/troupe/internal/toolset/skill"
	"github.com/troupe-run/troupe/internal/toolset/web"
	"github.com/troupe-run/troupe/internal/workdir"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
)

// RestrictedTools are the tools that reach beyond the directory. A run has one only if it is
// named: by the definition of the agent, by the run request, or by the operator in a rule
// about what the tool may do.
var RestrictedTools = []string{shell.Name, web.Name}

// OperatorRule returns the rule of this node's operator about a tool.
func (b *Builder) OperatorRule(name string) agentfile.ToolRule {
	i := slices.IndexFunc(b.cfg.Rules, func(r agentfile.ToolRule) bool { return r.Name == name })
	if i < 0 {
		return agentfile.ToolRule{}
	}
	return b.cfg.Rules[i]
}

// NamedOnly are all tools that a run has only if they are named, or if an agent of it has memory.
var NamedOnly = slices.Concat(RestrictedTools, []string{skill.Name}, agentmemory.ToolNames())

// MakeTool makes one tool of NamedOnly as this node has it, for the agent of a file. Those of a memory have no notes:
// see memoryTools.
func (b *Builder) MakeTool(name, dir, source string) (tool.Tool, error) {
	rule := b.OperatorRule(name)
	switch name {
	case shell.Name:
		return b.makeShell(dir, nil)
	case skill.Name:
		return skill.Tool(b.SkillPlaces(dir, source))
	case agentmemory.ReadTool, agentmemory.WriteTool, agentmemory.DeleteTool:
		return agentmemory.NewTool(name, agentmemory.Store{}, b.mask.MaskText)
	}
	return web.Get(web.Config{Allow: rule.Allow, Private: rule.Private, Timeout: rule.Timeout})
}

// makeShell makes the shell with further variables for its commands.
func (b *Builder) makeShell(dir string, env []string) (tool.Tool, error) {
	rule := b.OperatorRule(shell.Name)
	hidden, err := b.cfg.Directories.HiddenDirs(dir)
	if err != nil {
		return nil, err
	}
	return shell.Tool(shell.Config{Dir: dir, Read: rule.Read, WriteGit: rule.Git, Hide: hidden, Env: env, Timeout: rule.Timeout})
}

// IndexTool finds a tool by its name.
func IndexTool(list []model.ToolSpec, name string) int {
	return slices.IndexFunc(list, func(s model.ToolSpec) bool { return s.Name == name })
}

// restrictedTools returns the restricted tools of a task that are not its own commands. Its
// shell has further variables.
func (b *Builder) restrictedTools(t spec.Task, env []string) ([]tool.Tool, error) {
	var list []tool.Tool
	for _, name := range NamedOnly {
		if IndexTool(t.Tools, name) < 0 || IsCommand(t.Commands, name) || name == shell.Name && t.Workspace == "" ||
			slices.Contains(agentmemory.ToolNames(), name) {
			continue
		}
		made, err := b.MakeTool(name, t.Workspace, t.Source)
		if name == shell.Name && err == nil && len(env) > 0 {
			made, err = b.makeShell(t.Workspace, env)
		}
		if err != nil {
			return nil, fmt.Errorf("tool %s: %w", name, err)
		}
		list = append(list, made)
	}
	return list, nil
}

// IsCommand reports whether an agent file has a command of that name, which is the agent's
// own tool.
func IsCommand(list []spec.Command, name string) bool {
	return slices.ContainsFunc(list, func(c spec.Command) bool { return c.Name == name })
}

// CheckRules refuses rules without an effect before anything is started.
func CheckRules(rules []agentfile.ToolRule) error {
	b := &Builder{cfg: Config{Rules: rules}}
	for _, name := range RestrictedTools {
		if _, err := b.MakeTool(name, "", ""); err != nil {
			return fmt.Errorf("toolset: %s: %w", name, err)
		}
	}
	return nil
}

// NamedOnlySpecs returns the tools of NamedOnly as this node has them.
func (b *Builder) NamedOnlySpecs() ([]model.ToolSpec, error) {
	var specs []model.ToolSpec
	for _, name := range NamedOnly {
		t, err := b.MakeTool(name, "", "")
		if err != nil {
			return nil, fmt.Errorf("toolset: %s: %w", name, err)
		}
		specs = append(specs, t.Spec())
	}
	specs, _, err := b.ClassifyTools(specs, nil)
	return specs, err
}

// SkillPlaces returns the places with an agent's skills: the directory of the run, and the
// places where the user of this node keeps skills. The user's places take precedence if the
// agent's file, source, is not part of the directory: a working directory must not put its
// own text into the user's agents.
func (b *Builder) SkillPlaces(dir, source string) skill.Places {
	home, config, claude := b.cfg.Env("HOME"), b.cfg.Env("XDG_CONFIG_HOME"), b.cfg.Env("CLAUDE_CONFIG_DIR")
	if home != "" {
		config, claude = cmp.Or(config, filepath.Join(home, ".config")), cmp.Or(claude, filepath.Join(home, ".claude"))
	}
	return skill.Places{Dir: dir, User: skill.UserPlaces(home, config, claude), Mine: !workdir.IsBelow(dir, source)}
}
