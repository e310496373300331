package nodes

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/term"
)

// Nodes makes the command nodes.
func (cs *Commands) Nodes() *cobra.Command {
	c := &cobra.Command{
		Use: "nodes", Args: command.RejectUnknown,
		Short:   "List nodes, drain them or let them resume",
		Example: "  troupe nodes list\n  troupe nodes drain rack7\n  troupe nodes resume rack7",
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(cs.listCommand(), cs.drainCommand(), cs.resumeCommand())
	return c
}

func (cs *Commands) listCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Args: command.NoArguments,
		Short:       "List the live nodes and how many shards each holds",
		Example:     "  troupe nodes list\n  troupe nodes list -o json | jq -r '.[] | select(.state == \"leaving\") | .name'",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(*cobra.Command, []string) error {
			return cs.Sessions.Visit(session.ToJoin, func(ctx context.Context, s *session.Session) error {
				list, err := s.Nodes(ctx)
				if err != nil {
					return err
				}
				return cs.printNodes(list)
			})
		},
	}
}

func (cs *Commands) printNodes(list []client.NodeInfo) error {
	if cs.Console.Output != "table" {
		return cs.Console.PrintData(list)
	}
	rows := make([][]string, len(list))
	for i, n := range list {
		profile := n.Profile
		if n.Unproven != "" {
			profile += " (not proven: " + n.Unproven + ")"
		}
		if len(n.Avoids) > 0 {
			profile += ", too old for some logs: upgrade it"
		}
		for _, pool := range slices.Sorted(maps.Keys(n.Unreadable)) {
			profile += fmt.Sprintf(", cannot read shards %v of pool %s: their runs do not proceed", n.Unreadable[pool], pool)
		}
		pools, shards := term.CleanLine(strings.Join(slices.Sorted(maps.Keys(n.Pools)), ",")), fmt.Sprint(n.Held())
		if n.State == "alone" { // it owns all logs
			pools, shards = "all", "all"
		}
		rows[i] = []string{term.CleanLine(n.Name), term.CleanLine(n.State), pools, shards, fmt.Sprint(n.Live), fmt.Sprint(n.Busy), fmt.Sprint(n.Resting), term.CleanLine(n.Host), fmt.Sprint(n.PID), console.Age(n.Started), console.Age(n.Heard), term.CleanLine(n.Version), term.CleanLine(n.ID), term.CleanLine(profile)}
	}
	return cs.Console.PrintTable([]string{"NODE", "STATE", "POOLS", "SHARDS", "ACTORS", "BUSY", "PASSIVATED", "HOST", "PID", "AGE", "HEARD", "VERSION", "ID", "PROFILE"}, rows)
}
