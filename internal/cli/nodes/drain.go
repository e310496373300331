package nodes

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/term"
)

func (cs *Commands) drainCommand() *cobra.Command {
	var wait time.Duration
	c := &cobra.Command{
		Use: "drain NODE", Args: command.Exactly("NODE"),
		Short: "Make a node hand off its shards and take no new ones",
		Long: `Ask all nodes of a name to give their shards to the others and to take no more,
also after a restart, until "troupe nodes resume". A node releases a shard once its
calls have ended, so nothing is lost or done twice.`,
		Example:     "  troupe nodes drain rack7\n  troupe nodes drain rack7 --wait 5m && systemctl stop troupe-node",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			return cs.Sessions.Visit(session.ToJoin, func(ctx context.Context, s *session.Session) error { return cs.drainNode(ctx, s, args[0], wait) })
		},
	}
	c.Flags().DurationVar(&wait, "wait", 0, "how long to wait until the node holds no shard; 0: do not wait")
	return c
}

// drainNode requests a drain, and waits until no node of that name holds a shard.
func (cs *Commands) drainNode(ctx context.Context, s *session.Session, name string, wait time.Duration) error {
	named, err := s.Drain(ctx, client.DrainRequest{Node: name})
	if err != nil {
		return err
	}
	for _, n := range named {
		if n.Warning != "" {
			cs.Console.Say(term.CleanLine("warning: " + n.Name + ": " + n.Warning))
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
			return cs.printNodes(named)
		case time.Now().After(until):
			return &exit.Failure{Code: exit.Failed, Err: fmt.Errorf("%s still holds %d shards after %s: %s", name, left, wait, heldShards(named)), Hint: "it gives them as they become idle; troupe nodes list shows how far it is"}
		}
		if err := session.Pause(ctx, session.AskPause); err != nil {
			return err
		}
	}
}

const holdingsMax = 8 // shards that are listed

// heldShards lists the shards that nodes hold, and how many of their actors are busy.
func heldShards(list []client.NodeInfo) string {
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

func (cs *Commands) resumeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "resume NODE", Args: command.Exactly("NODE"),
		Short:       "Let a drained node take shards again",
		Example:     "  troupe nodes resume rack7",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			return cs.Sessions.Visit(session.ToJoin, func(ctx context.Context, s *session.Session) error {
				named, err := s.Drain(ctx, client.DrainRequest{Node: args[0], Undo: true})
				if err != nil {
					return err
				}
				return cs.printNodes(named)
			})
		},
	}
}
