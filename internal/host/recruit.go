package host

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agentfile"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/pick"
	"github.com/troupe-run/troupe/supervisor"
	"github.com/troupe-run/troupe/tool"
	"github.com/troupe-run/troupe/tool/kept"
)

// recruit adds the agents of agent files: those of the directory that the
// client names and, for an agent that is not built in, those of the places
// where people keep them. Commands count only in the named directory: a
// repository that is looked at must not bring command lines of its own.
func (h *Host) recruit(o *supervisor.Opened, r client.RunRequest, a *client.RunAccepted) (named []agentfile.Definition, err error) {
	given, place, err := h.placed("agents", r.Agents, h.nameable())
	if err != nil {
		return nil, err
	}
	var found []agentfile.Definition
	var notes []agentfile.Note
	if given != "" {
		if named, notes, err = agentfile.LoadBelow(place, given); err != nil {
			return nil, bad("`troupe agents validate` shows all that is wrong", "agents: %s", h.located(err))
		}
		if err := h.approved(named, o.Workspace); err != nil {
			return nil, err
		}
	}
	known := func(name string) bool {
		return slices.ContainsFunc(o.Definitions, func(d supervisor.Definition) bool { return d.Name == name }) ||
			slices.ContainsFunc(named, func(d agentfile.Definition) bool { return d.Name == name })
	}
	wanted := slices.DeleteFunc(asked(r), known)
	if len(asked(r)) > 0 {
		// What is broken there is another matter, unless it is an agent asked for.
		var broken error
		found, _, broken = agentfile.Find(o.Workspace)
		tellHidden(found, named, asked(r), known, a)
		found = slices.DeleteFunc(found, func(d agentfile.Definition) bool { return !slices.Contains(wanted, d.Name) })
		if len(wanted) > 0 && len(found) == 0 && broken != nil {
			return nil, bad("mend the file, or name another agent", "there is no agent %q that can be read: %s", wanted[0], h.located(broken))
		}
	}
	tellFiles(notes, named, asked(r), a)
	for _, d := range found {
		if !h.cfg.trusts(d.Path, d.Digest, o.Workspace) {
			var off []string
			d, off = harmless(d)
			if len(off) > 0 {
				a.Notes = append(a.Notes, fmt.Sprintf("%s: its %s are off; name the directory with --agents to allow them", d.Path, strings.Join(off, ", ")))
			}
		}
		named = append(named, d)
	}
	for _, d := range named {
		d = h.meant(o, d, a)
		if err := h.lacking(d); err != nil && !slices.Contains(asked(r), d.Name) {
			a.Notes = append(a.Notes, fmt.Sprintf("%s: left out: %v", d.Path, err))
			continue
		}
		if err := h.enlist(o, d, a); err != nil {
			return nil, err
		}
	}
	return named, nil
}

// approved refuses agents that a request names and that bring what is executed,
// where a run may have written their files and the user has not approved them. A
// hook may be what keeps a run safe, so none of it is left out silently.
func (h *Host) approved(named []agentfile.Definition, workspace string) error {
	for _, d := range named {
		_, off := harmless(d)
		if len(off) == 0 || h.cfg.trustsNamed(d.Path, d.Digest, workspace) {
			continue
		}
		return &client.Error{Code: client.CodeForbidden, Text: fmt.Sprintf("agents: %s brings %s, and the user of this node has not approved it", d.Path, strings.Join(off, ", ")),
			Hint: "keep it outside of the roots and start the node with --trust, or use `troupe run --agents` on its machine"}
	}
	return nil
}

// harmless is a definition without what is executed, and what that was.
func harmless(d agentfile.Definition) (mine agentfile.Definition, off []string) {
	if len(d.Commands) > 0 {
		d.Commands, off = nil, append(off, "commands")
	}
	if len(allowedCommands(d.Tools)) > 0 {
		d.Tools, off = slices.Clone(d.Tools), append(off, "rules for shell")
		for i := range d.Tools {
			d.Tools[i].Args = ""
		}
	}
	isCommand := func(k agent.Hook) bool { return k.Command != "" }
	if slices.ContainsFunc(d.Hooks, isCommand) {
		d.Hooks, off = slices.DeleteFunc(slices.Clone(d.Hooks), isCommand), append(off, "hooks")
	}
	defines := func(s agentfile.MCPServer) bool { return s.Config != nil }
	if slices.ContainsFunc(d.MCPServers, defines) {
		d.MCPServers, off = slices.DeleteFunc(slices.Clone(d.MCPServers), defines), append(off, "MCP servers")
	}
	script := func(route string) bool { return strings.HasPrefix(route, agentfile.ScriptPrefix) }
	c := d.Manners.Context.Model
	if script(d.Model) || slices.ContainsFunc(d.Fallback, script) || c != nil && script(c.Name) {
		off = append(off, "scripts as models")
		if d.Fallback = slices.DeleteFunc(slices.Clone(d.Fallback), script); script(d.Model) {
			d.Model = ""
		}
		if c != nil && script(c.Name) {
			d.Manners.Context.Model = nil
		}
	}
	return d, off
}

// tellHidden says that a file was found for an agent that is asked for, and that
// the built-in one of its name goes before it.
func tellHidden(found, named []agentfile.Definition, asked []string, known func(string) bool, a *client.RunAccepted) {
	for _, d := range found {
		given := slices.ContainsFunc(named, func(n agentfile.Definition) bool { return n.Name == d.Name })
		if !given && slices.Contains(asked, d.Name) && known(d.Name) {
			a.Notes = append(a.Notes, fmt.Sprintf("%s: not used, the built-in agent %s goes before it; name its directory with --agents", d.Path, d.Name))
		}
	}
}

// filesNotedMax is how many notes on agent files a run shows.
const filesNotedMax = 8

// tellFiles passes on what there is to say about files. Of a large directory
// that is only about those who are asked for.
func tellFiles(notes []agentfile.Note, named []agentfile.Definition, asked []string, a *client.RunAccepted) {
	about := func(path string) bool {
		return slices.ContainsFunc(named, func(d agentfile.Definition) bool { return d.Path == path && slices.Contains(asked, d.Name) })
	}
	more := 0
	for _, n := range notes {
		if len(notes) > filesNotedMax && !about(n.Path) {
			more++
			continue
		}
		a.Notes = append(a.Notes, n.String())
	}
	if more > 0 {
		a.Notes = append(a.Notes, fmt.Sprintf("%d notes on agent files: `troupe agents validate` with the directory shows them", more))
	}
}

// lacking: nothing here says how to reach a model that a file names by its
// provider. Who is not asked for can be done without.
func (h *Host) lacking(d agentfile.Definition) error {
	for _, route := range append([]string{d.Model}, d.Fallback...) {
		if route == "" {
			continue
		}
		if _, err := h.models.named(route); errors.Is(err, pick.ErrCredentials) {
			return err
		}
	}
	return nil
}

// enlist adds one agent and its commands.
func (h *Host) enlist(o *supervisor.Opened, d agentfile.Definition, a *client.RunAccepted) error {
	def := supervisor.Definition{Name: d.Name, Description: d.Description, System: d.Prompt, Delegates: d.Delegates, Source: d.Path, Hash: version(d.Prompt),
		Limits: agent.Limits{Turns: d.MaxTurns, Tokens: d.Budget.Tokens, Nano: int64(d.Budget.USD * usdNano)}}
	if !strings.HasPrefix(def.System, "agent: ") {
		def.System = "agent: " + d.Name + "\n" + def.System
	}
	if ms := d.Timeout.Milliseconds(); ms > 0 {
		def.Limits.SoftMS, def.Limits.HardMS = ms, agent.HardLimitMS(ms)
	}
	if def.Tools = d.Grants(); len(def.Tools) > 0 {
		def.Tools = append(def.Tools, kept.Name) // what it may see, it may see whole
	}
	def.Deny, def.Pool = d.Denies(), d.Placement.Pool
	if d.PermissionMode == agentfile.ModePlan {
		def.Deny = append(def.Deny, onlyReads)
	}
	share(&def.Limits, o.Limits, d.Budget.Share)
	def.Manners.Hooks = append(signed(d), ruled(d)...)
	if d.Model != "" {
		choice, err := h.models.named(d.Model)
		if err != nil {
			return badModel(err, "change `model` in "+d.Path, "agent %s: %v", d.Name, err)
		}
		m := along(o.Model, choice, o.Unpriced)
		def.Model, def.Manners.Context.Model = &m, summarizer(choice)
	}
	wishes(&def, o.Model, d)
	if err := h.behaves(o, &def, d, a); err != nil {
		return err
	}
	if err := h.skilled(o, &def, d, a); err != nil {
		return err
	}
	for _, c := range d.Commands {
		if err := addCommand(o, d.Path, c); err != nil {
			return err
		}
		if def.Tools != nil && !slices.Contains(def.Tools, c.Name) {
			def.Tools = append(def.Tools, c.Name)
		}
	}
	o.Definitions = slices.DeleteFunc(o.Definitions, func(known supervisor.Definition) bool { return known.Name == d.Name })
	o.Definitions = append(o.Definitions, def)
	return nil
}

func names(refs []agentfile.ToolRef) []string {
	list := make([]string, len(refs))
	for i, r := range refs {
		list[i] = r.Name
	}
	return list
}

// reserved are the names of tools that the loop itself serves.
var reserved = append([]string{"delegate", agent.SendSpec().Name, agent.AskSpec().Name}, specNames(agent.JournalTools())...)

func specNames(specs []model.ToolSpec) []string {
	list := make([]string, len(specs))
	for i, s := range specs {
		list[i] = s.Name
	}
	return list
}

// addCommand adds a command tool. Two agents may share one if it is the same.
func addCommand(o *supervisor.Opened, path string, cfg tool.CommandConfig) error {
	if slices.Contains(reserved, cfg.Name) {
		return bad("give it another name in "+path, "the tool %s is built in and cannot be a command", cfg.Name)
	}
	t, err := tool.Command(cfg)
	if err != nil {
		return bad("change x-troupe.tools in "+path, "tool %s: %v", cfg.Name, err)
	}
	spec, command := t.Spec(), agent.Command{Name: cfg.Name, Line: cfg.Command}
	i := slices.IndexFunc(o.Tools, func(known model.ToolSpec) bool { return known.Name == spec.Name })
	if i < 0 {
		o.Tools, o.Commands = append(o.Tools, spec), append(o.Commands, command)
		return nil
	}
	if o.Tools[i] != spec || !slices.Contains(o.Commands, command) {
		return bad("give one of them another name", "%s: another agent has a different tool %q", path, cfg.Name)
	}
	return nil
}
