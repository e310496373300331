package agents

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/term"
)

func (cs *Commands) listCommand() *cobra.Command {
	var g Sources
	return g.AddFlags(&cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Args: command.NoArguments,
		Short:       "List built-in agents and agent files with their sources",
		Example:     "  troupe agents list\n  troupe agents list --agents ./team -o json | jq -r '.[].name'",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(*cobra.Command, []string) error {
			r, err := g.ReadRoster()
			if err != nil {
				return err
			}
			if n := len(r.Problems); n > 0 && !cs.Console.Quiet {
				cs.Console.Say(cs.Console.ErrStyle.Yellow(fmt.Sprintf("%s in agent files: troupe agents validate shows them", console.CountOf(n, "problem"))))
			}
			why := cs.findTrifectas(g, r.Agents)
			if cs.Console.Output != "table" {
				return cs.Console.PrintData(r.Agents)
			}
			var rows [][]string
			for _, i := range r.Agents {
				from := g.ShortPath(i.From)
				if i.Hidden != "" {
					from += " (hidden)"
				}
				rows = append(rows, []string{term.CleanLine(i.Name), term.CleanLine(cmp.Or(i.Model, "the run's")), term.CleanLine(from), term.CleanLine(i.Description)})
			}
			if err := cs.Console.PrintTable([]string{"NAME", "MODEL", "FROM", "DESCRIPTION"}, rows); err != nil {
				return err
			}
			cs.sayTrifectas(r.Agents, why)
			if !cs.Console.Quiet {
				cs.Console.Say(cs.Console.ErrStyle.Yellow("note: ") + defaultAgents)
			}
			return nil
		},
	})
}

// defaultAgents says which agent gets a task that names none.
const defaultAgents = `a task that names no agent goes to "assistant", which needs a model and has "explorer" search a directory; without a key "coordinator" and the agents it names play the built-in investigation`

// sayTrifectas says which agents can do all three.
func (cs *Commands) sayTrifectas(list []Info, why string) {
	if cs.Console.Quiet {
		return
	}
	say := func(text string) { cs.Console.Say(cs.Console.ErrStyle.Yellow("note: ") + term.CleanLine(text)) }
	for _, i := range list {
		if i.Trifecta != nil {
			say(fmt.Sprintf("%q %s", i.Name, i.Trifecta))
		}
	}
	if why != "" {
		say(unknownTrifecta + why)
	}
}

// unknownTrifecta begins the note where no run of an agent can be prepared here.
const unknownTrifecta = "which agents may read text from outside and private data, and send data out, is not known here: "
