package host

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agentfile"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
	"github.com/troupe-run/troupe/tool"
	"github.com/troupe-run/troupe/tool/shell"
	"github.com/troupe-run/troupe/tool/skill"
	"github.com/troupe-run/troupe/tool/web"
)

// powers are the tools that reach further than the directory. A run has one only
// where somebody named it: the definition of the agent, who asked for the run, or
// the operator, by a rule of what may be done with it.
var powers = []string{shell.Name, web.Name}

// rule is what the operator of this node says about a tool.
func (h *Host) rule(name string) agentfile.ToolRule {
	i := slices.IndexFunc(h.cfg.Tools, func(r agentfile.ToolRule) bool { return r.Name == name })
	if i < 0 {
		return agentfile.ToolRule{}
	}
	return h.cfg.Tools[i]
}

// byName are all tools that a run has only where somebody named them.
var byName = append(slices.Clone(powers), skill.Name)

// ByName are those tools as this node has them.
func ByName(cfg Config) ([]model.ToolSpec, error) {
	h := &Host{cfg: cfg.withDefaults()}
	var o supervisor.Opened
	for _, name := range byName {
		t, err := h.power(name, "", "")
		if err != nil {
			return nil, fmt.Errorf("host: tools: %s: %w", name, err)
		}
		o.Tools = append(o.Tools, t.Spec())
	}
	return o.Tools, h.classify(&o, &client.RunAccepted{})
}

// power makes one as this node has it, for the agent of a file.
func (h *Host) power(name, dir, source string) (tool.Tool, error) {
	rule := h.rule(name)
	switch name {
	case shell.Name:
		hidden, err := h.places.hidden(dir)
		if err != nil {
			return nil, err
		}
		return shell.Tool(shell.Config{Dir: dir, Read: rule.Read, WriteGit: rule.Git, Hide: hidden, Timeout: rule.Timeout})
	case skill.Name:
		return skill.Tool(h.skillPlaces(dir, source))
	}
	return web.Get(web.Config{Allow: rule.Allow, Private: rule.Private, Timeout: rule.Timeout})
}

// checkPowers refuses rules that say nothing before anything is started.
func (c Config) checkPowers() error {
	for _, name := range powers {
		if _, err := (&Host{cfg: c}).power(name, "", ""); err != nil {
			return fmt.Errorf("host: tools: %s: %w", name, err)
		}
	}
	return nil
}

// specOf finds a tool by its name.
func specOf(list []model.ToolSpec, name string) int {
	return slices.IndexFunc(list, func(s model.ToolSpec) bool { return s.Name == name })
}

// empower gives the run the powers that somebody named. A tool of that name that
// is there already is somebody's own.
func (h *Host) empower(o *supervisor.Opened, r client.RunRequest) error {
	forAll := map[string]bool{} // whether all agents may have it
	for _, name := range powers {
		named := slices.ContainsFunc(o.Definitions, func(d supervisor.Definition) bool { return slices.Contains(d.Tools, name) })
		all := slices.Contains(names(agentfile.Refs(r.AllowedTools)), name) || h.rule(name).Allow != nil
		if !named && !all || specOf(o.Tools, name) >= 0 || name == shell.Name && o.Workspace == "" {
			continue
		}
		t, err := h.power(name, o.Workspace, "")
		if err != nil {
			return fmt.Errorf("host: tools: %w", err)
		}
		o.Tools, forAll[name] = append(o.Tools, t.Spec()), all
	}
	withhold(o, forAll)
	return nil
}

// withhold keeps a power that other definitions name from those that name no
// tools: they may pass it on to a child that names it, and have it not themselves.
func withhold(o *supervisor.Opened, forAll map[string]bool) {
	var offer []string
	for _, s := range o.Tools {
		if all, power := forAll[s.Name]; all || !power {
			offer = append(offer, s.Name)
		}
	}
	if len(offer) == len(o.Tools) {
		return
	}
	for i, d := range o.Definitions {
		if d.Tools == nil && d.Offer == nil {
			o.Definitions[i].Offer = offer
		}
	}
}

// ownPowers are those among the tools of a task that are no commands of it.
func (h *Host) ownPowers(t agent.Task) ([]tool.Tool, error) {
	var list []tool.Tool
	for _, name := range byName {
		if specOf(t.Tools, name) < 0 || isCommand(t.Commands, name) || name == shell.Name && t.Workspace == "" {
			continue
		}
		made, err := h.power(name, t.Workspace, t.Source)
		if err != nil {
			return nil, fmt.Errorf("tool %s: %w", name, err)
		}
		list = append(list, made)
	}
	return list, nil
}

// isCommand: an agent file has a command of that name, which is its own.
func isCommand(list []agent.Command, name string) bool {
	return slices.ContainsFunc(list, func(c agent.Command) bool { return c.Name == name })
}

// wholeTools refuses a part of a tool that nothing would keep the run to: with
// shell, approvals do.
func wholeTools(r client.RunRequest) error {
	for _, ref := range agentfile.Refs(r.AllowedTools) {
		if ref.Args != "" && ref.Args != "*" && ref.Name != shell.Name {
			return bad("name the tool alone, which gives all of it, or leave it out", "nothing keeps a run to a part of %s, so %s(%s) cannot be allowed", ref.Name, ref.Name, ref.Args)
		}
	}
	return nil
}

// ofDirectory are the built-in tools that there are only with a directory.
var ofDirectory = []string{shell.Name, "edit_file", "git_blame", "git_log", "git_numstat", "git_show", "glob", "grep", "list_dir", "read_file", "write_file"}

// tellOfNoDirectory says which tools of the root there are not, because the run
// has no directory.
func tellOfNoDirectory(o supervisor.Opened, a *client.RunAccepted) {
	i := slices.IndexFunc(o.Definitions, func(d supervisor.Definition) bool { return d.Name == o.Root })
	if o.Workspace != "" || i < 0 {
		return
	}
	missing := slices.DeleteFunc(slices.Clone(o.Definitions[i].Tools), func(name string) bool {
		return !slices.Contains(ofDirectory, name) || specOf(o.Tools, name) >= 0
	})
	if len(missing) > 0 {
		a.Notes = append(a.Notes, fmt.Sprintf("%s names %s, which it does not have here: give the run a directory with --dir", o.Root, strings.Join(missing, ", ")))
	}
}

// tellUnknown names what was allowed or taken away and is no tool: one that is
// misspelled would otherwise be there, or not, without a word.
func tellUnknown(there []model.ToolSpec, said []string, a *client.RunAccepted) {
	for _, name := range said {
		if specOf(there, name) < 0 && !agentfile.Builtin(name) {
			a.Notes = append(a.Notes, fmt.Sprintf("no tool is called %.80q%s", name, agentfile.Meant(name)))
		}
	}
}
