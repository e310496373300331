package agents

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/request"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/term"
)

// slashCommands lists the prompts behind `troupe run "/NAME"`.
func (cs *Commands) slashCommands() *cobra.Command {
	g := Sources{Dir: "."}
	c := &cobra.Command{
		Use: "commands", Args: command.NoArguments,
		Short: "List the slash commands of Claude Code that troupe run takes",
		Long: `List the prompts in .claude/commands of the directory and in ~/.claude/commands.
` + "`troupe run --dir . \"/NAME arguments\"`" + ` and a line /NAME in troupe chat send such a prompt.`,
		Example:     "  troupe agents commands\n  troupe run --dir . \"/review internal/node\"",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(*cobra.Command, []string) error {
			if err := request.AbsoluteDir(&g.Dir); err != nil {
				return err
			}
			list, notes, err := agentfile.LoadSlashCommands(g.Dir)
			say := func(text string) {
				if !cs.Console.Quiet {
					cs.Console.Say(cs.Console.ErrStyle.Yellow(term.CleanLine(text)))
				}
			}
			for _, wrong := range agentfile.SplitProblems(err) {
				say(wrong.Error())
			}
			for _, n := range notes {
				say(n.String())
			}
			if cs.Console.Output != "table" {
				if list == nil {
					list = []agentfile.SlashCommand{}
				}
				return cs.Console.PrintData(list)
			}
			var rows [][]string
			for _, i := range list {
				rows = append(rows, []string{term.CleanLine(fmt.Sprintf("/%s %s", i.Name, i.Hint)), term.CleanLine(g.ShortPath(i.Path)), term.CleanLine(i.Description)})
			}
			return cs.Console.PrintTable([]string{"COMMAND", "FROM", "DESCRIPTION"}, rows)
		},
	}
	c.Flags().StringVar(&g.Dir, "dir", ".", "directory whose commands to list")
	return c
}
