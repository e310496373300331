package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/term"
)

func (a *nodeCommands) nodesCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "nodes", Args: unknownCommand,
		Short:   "List the nodes, and let them leave or stay",
		Example: "  troupe nodes list\n  troupe nodes drain rack7\n  troupe nodes resume rack7",
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.nodesListCommand(), a.drainCommand(), a.stayCommand())
	return c
}

func (a *nodeCommands) nodesListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Args: none,
		Short:       "List the live nodes and how many shards each holds",
		Example:     "  troupe nodes list\n  troupe nodes list -o json | jq -r '.[] | select(.state == \"leaving\") | .name'",
		Annotations: map[string]string{formats: dataFormats},
		RunE: func(*cobra.Command, []string) error {
			return a.sessions.visit(toJoin, func(ctx context.Context, s *seat) error {
				list, err := s.Nodes(ctx)
				if err != nil {
					return err
				}
				return a.printNodes(list)
			})
		},
	}
}

func (a *nodeCommands) printNodes(list []client.NodeInfo) error {
	if a.console.output != "table" {
		return a.console.printData(list)
	}
	rows := make([][]string, len(list))
	for i, n := range list {
		profile := n.Profile
		if n.Unproven != "" {
			profile += " (not proven: " + n.Unproven + ")"
		}
		if n.Rules > 0 {
			profile += fmt.Sprintf(", rules %d", n.Rules)
		}
		if len(n.Avoids) > 0 {
			profile += ", too old for some logs: upgrade it"
		}
		for _, pool := range slices.Sorted(maps.Keys(n.Unreadable)) {
			profile += fmt.Sprintf(", cannot read shards %v of pool %s: their runs stand still", n.Unreadable[pool], pool)
		}
		rows[i] = []string{term.Line(n.Name), term.Line(n.State), term.Line(strings.Join(slices.Sorted(maps.Keys(n.Pools)), ",")), fmt.Sprint(n.Held()), fmt.Sprint(n.Live), fmt.Sprint(n.Busy), fmt.Sprint(n.Resting), term.Line(n.Host), fmt.Sprint(n.PID), age(n.Started), age(n.Heard), term.Line(n.Version), term.Line(n.ID), term.Line(profile)}
	}
	return a.console.table([]string{"NODE", "STATE", "POOLS", "SHARDS", "LIVE", "BUSY", "RESTING", "HOST", "PID", "AGE", "HEARD", "VERSION", "ID", "PROFILE"}, rows)
}

func (a *nodeCommands) drainCommand() *cobra.Command {
	var wait time.Duration
	c := &cobra.Command{
		Use: "drain NODE", Args: exactly("NODE"),
		Short: "Ask a node to give away what it holds, and to take nothing more",
		Long: `Ask all nodes of a name to give their shards to the others and to take no more,
also after a restart, until "troupe nodes resume". A node gives a shard once
nothing is under way in it, so nothing is lost or done twice.`,
		Example:     "  troupe nodes drain rack7\n  troupe nodes drain rack7 --wait 5m && systemctl stop troupe-node",
		Annotations: map[string]string{formats: dataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			return a.sessions.visit(toJoin, func(ctx context.Context, s *seat) error { return a.drain(ctx, s, args[0], wait) })
		},
	}
	c.Flags().DurationVar(&wait, "wait", 0, "wait so long for the node to hold nothing any more")
	return c
}

// drain requests a drain, and waits until no node of that name holds a shard.
func (a *nodeCommands) drain(ctx context.Context, s *seat, name string, wait time.Duration) error {
	named, err := s.Drain(ctx, client.DrainRequest{Node: name})
	if err != nil {
		return err
	}
	for _, n := range named {
		if n.Warning != "" {
			a.console.say(term.Line("warning: " + n.Name + ": " + n.Warning))
		}
	}
	for until := time.Now().Add(wait); ; {
		left := 0
		list, err := s.Nodes(ctx)
		if err != nil {
			return err
		}
		named = named[:0]
		for _, n := range list {
			if n.Name == name || n.ID == name {
				named, left = append(named, n), left+n.Held()
			}
		}
		switch {
		case left == 0, wait == 0:
			return a.printNodes(named)
		case time.Now().After(until):
			return &failure{exitFailed, fmt.Errorf("%s still holds %d shards after %s: %s", name, left, wait, holdings(named)), "it gives them as they become idle; troupe nodes list shows how far it is"}
		}
		if err := pause(ctx, askPause); err != nil {
			return err
		}
	}
}

const holdingsMax = 8 // shards that are listed

// holdings lists the shards that nodes hold, and how many of their actors are busy.
func holdings(list []client.NodeInfo) string {
	var names []string
	busy := int64(0)
	for _, n := range list {
		busy += n.Busy
		for _, pool := range slices.Sorted(maps.Keys(n.Pools)) {
			for _, s := range n.Pools[pool] {
				names = append(names, fmt.Sprintf("%s.%d", pool, s))
			}
		}
	}
	more := ""
	if len(names) > holdingsMax {
		names, more = names[:holdingsMax], ", …"
	}
	return fmt.Sprintf("%s%s; %d calls are under way", strings.Join(names, ", "), more, busy)
}

func (a *nodeCommands) stayCommand() *cobra.Command {
	return &cobra.Command{
		Use: "resume NODE", Args: exactly("NODE"),
		Short:       "Let a node that was drained take shards again",
		Example:     "  troupe nodes resume rack7",
		Annotations: map[string]string{formats: dataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			return a.sessions.visit(toJoin, func(ctx context.Context, s *seat) error {
				named, err := s.Drain(ctx, client.DrainRequest{Node: args[0], Undo: true})
				if err != nil {
					return err
				}
				return a.printNodes(named)
			})
		},
	}
}
