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
	given, err := h.rooted("agents", r.Agents)
	if err != nil {
		return nil, err
	}
	var found []agentfile.Definition
	var notes []agentfile.Note
	if given != "" {
		if named, notes, err = agentfile.Load(given); err != nil {
			return nil, bad("`troupe agents validate` shows all that is wrong", "%v", err)
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
		found, _, broken = agentfile.Load(agentfile.Dirs(o.Workspace)...)
		tellHidden(found, named, asked(r), known, a)
		found = slices.DeleteFunc(found, func(d agentfile.Definition) bool { return !slices.Contains(wanted, d.Name) })
		if len(wanted) > 0 && len(found) == 0 && broken != nil {
			return nil, bad("mend the file, or name another agent", "there is no agent %q that can be read: %v", wanted[0], broken)
		}
	}
	tellFiles(notes, named, asked(r), a)
	for _, d := range found {
		if len(d.Commands) > 0 {
			a.Notes = append(a.Notes, fmt.Sprintf("%s: its commands are off; name the directory with --agents to allow them", d.Path))
			d.Commands = nil
		}
		if mine, brought := unruled(d, o.Workspace); brought {
			a.Notes = append(a.Notes, fmt.Sprintf("%s: its rules for shell are off; name the directory with --agents to allow them", d.Path))
			d = mine
		}
		if mine := h.ownHooks(d, o.Workspace); len(mine) < len(d.Hooks) {
			a.Notes = append(a.Notes, fmt.Sprintf("%s: its hooks are off; name the directory with --agents to allow them", d.Path))
			d.Hooks = mine
		}
		if mine := ownServers(d, o.Workspace); len(mine) < len(d.MCPServers) {
			a.Notes = append(a.Notes, fmt.Sprintf("%s: its MCP servers are off; name the directory with --agents to allow them", d.Path))
			d.MCPServers = mine
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
		def.Limits.SoftMS, def.Limits.HardMS = ms, ms+max(hardGraceMS, ms/3)
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
			return bad("change `model` in "+d.Path, "agent %s: %v", d.Name, err)
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
