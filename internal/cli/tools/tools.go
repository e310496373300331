package tools

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/internal/cli/agents"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/node"
	"github.com/troupe-run/troupe/internal/term"
	"github.com/troupe-run/troupe/model"
)

// Tools makes the command tools.
func (cs *Commands) Tools() *cobra.Command {
	c := command.Group("tools", "List the available tools",
		"Tools are built in, or commands of agent files in a directory that --agents names.", "  troupe tools list\n  troupe tools list --agents ./team")
	c.AddCommand(cs.listCommand())
	return c
}

// toolInfo is one tool that a run here would have.
type toolInfo struct {
	Name        string      `json:"name"`
	Class       model.Class `json:"class"`
	From        string      `json:"from"` // "built in", or the agent file
	Command     string      `json:"command,omitempty"`
	Description string      `json:"description"`
	Schema      string      `json:"input_schema"`
	// Named means that an agent has it only if its definition, the run or the operator names it.
	Named bool `json:"named_only,omitempty"`
}

func (cs *Commands) listCommand() *cobra.Command {
	var g serverSources
	return g.addFlags(&cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Args: command.NoArguments,
		Short: "List the tools of a run started here, with their sources and what running one twice does",
		Long: `List the tools that a run in this directory would have. The class says what running
a tool twice does: read and idempotent ones may run again after a crash; an effect
of unknown outcome waits for a person; irreversible ones run at most once.
Those marked "if named" are only for agents that are given them by name, and need
what docs/sandbox.md says.`,
		Example:     "  troupe tools list\n  troupe tools list --agents ./team -o json |\n    jq -r '.[] | select(.class != \"read\") | .name'",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(*cobra.Command, []string) error {
			list, err := cs.runTools(&g)
			if err != nil {
				return err
			}
			if cs.Console.Output != "table" {
				return cs.Console.PrintData(list)
			}
			var rows [][]string
			for _, t := range list {
				from := g.ShortPath(t.From)
				if t.Named {
					from += ", if named"
				}
				rows = append(rows, []string{term.CleanLine(t.Name), term.CleanLine(string(t.Class)), term.CleanLine(from), term.CleanLine(t.Description)})
			}
			return cs.Console.PrintTable([]string{"NAME", "CLASS", "FROM", "DESCRIPTION"}, rows)
		},
	})
}

// runTools are the tools that a run would be opened with, as far as this machine
// can say.
func (cs *Commands) runTools(g *serverSources) ([]toolInfo, error) {
	r, err := g.ReadRoster()
	if err != nil {
		return nil, err
	}
	if err := g.completeConfig(); err != nil {
		return nil, err
	}
	o, notes, err := agents.PreviewRun(cs.Sessions, g.Sources, g.config, "")
	if err != nil {
		return nil, err
	}
	for _, n := range notes {
		if !cs.Console.Quiet {
			cs.Console.Say(cs.Console.ErrStyle.Yellow("note: ") + term.CleanLine(n))
		}
	}
	list := []toolInfo{}
	for _, spec := range o.Tools {
		t := toolInfo{Name: spec.Name, Class: spec.Class, From: agents.BuiltIn, Description: spec.Description, Schema: spec.Schema}
		for _, c := range o.Commands {
			if c.Name == spec.Name {
				t.Command, t.From = c.Line, commandFile(r, c.Name)
			}
		}
		for _, server := range o.Servers {
			if server.Has(spec.Name) {
				t.From = server.Source
			}
		}
		list = append(list, t)
	}
	return cs.markNamedOnly(list)
}

// markNamedOnly marks the tools that a run has only if its agent names them, and
// adds those that no agent here names.
func (cs *Commands) markNamedOnly(list []toolInfo) ([]toolInfo, error) {
	own, err := agentfile.LoadShared(config.UserFile())
	if err != nil {
		return nil, err
	}
	specs, err := node.OptInTools(node.Config{Env: cs.Console.Getenv, Tools: own.Tools})
	if err != nil {
		return nil, err
	}
	for _, spec := range specs {
		i := slices.IndexFunc(list, func(t toolInfo) bool { return t.Name == spec.Name })
		if i < 0 {
			i, list = len(list), append(list, toolInfo{Name: spec.Name, Class: spec.Class, From: agents.BuiltIn, Description: spec.Description, Schema: spec.Schema})
		}
		list[i].Named = list[i].From == agents.BuiltIn
	}
	return list, nil
}

// commandFile returns the first file that defines a command.
func commandFile(r agents.Roster, name string) string {
	for _, i := range r.Agents {
		if slices.Contains(i.Commands, name) {
			return i.From
		}
	}
	return "agent file"
}
