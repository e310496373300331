package runs

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/term"
)

type eventFlags struct {
	follow bool
	from   string
	kinds  []string
}

// Events makes the command events.
func (cs *Commands) Events() *cobra.Command {
	var flags eventFlags
	c := &cobra.Command{
		Use: "events RUN", Args: command.Exactly("RUN"),
		Short: "Show the events of a run",
		Long: `Show the events of a run, read from its logs. They are complete, also after a crash.

With -o jsonl each line is one event in the form published on NATS. With -o json the
document holds the events and a cursor; --from CURSOR shows only later events.`,
		Example:     "  troupe events 01k9z3 -f\n  troupe events 01k9z3 --kind tool.started,tool.finished -o jsonl\n  troupe events 01k9z3 -o json | jq -r .cursor",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			return cs.Sessions.VisitRun(session.ToInspect, args[0], func(ctx context.Context, s *session.Session, run string) error {
				return cs.printEvents(ctx, s, run, flags)
			})
		},
	}
	c.Flags().BoolVarP(&flags.follow, "follow", "f", false, "continue until the run has ended; Ctrl-C only detaches")
	c.Flags().StringVar(&flags.from, "from", "", "only events after this cursor")
	c.Flags().StringSliceVar(&flags.kinds, "kind", nil, "only these kinds; a prefix selects a group (tool, turn.started)")
	return c
}

// includes reports whether a kind was asked for.
func (f eventFlags) includes(kind string) bool {
	first, _, _ := strings.Cut(kind, ".")
	return len(f.kinds) == 0 || slices.Contains(f.kinds, kind) || slices.Contains(f.kinds, first)
}

func (cs *Commands) printEvents(ctx context.Context, s *session.Session, run string, flags eventFlags) error {
	seen, err := session.ParseCursor(run, flags.from)
	if err != nil {
		return err
	}
	info, err := s.Get(ctx, run)
	if err != nil {
		return err
	}
	if flags.follow && s.Node != nil {
		if info.State != client.RunFinished {
			return s.NotRunningError(run)
		}
		flags.follow = false
	}
	estimated := info.Result != nil && info.Result.CostEstimated
	list := []json.RawMessage{}
	err = s.Events(ctx, run, seen.Cursor(), flags.follow, func(e client.Event, raw []byte) error {
		if !seen.Advance(e) || !flags.includes(e.Kind) {
			return nil
		}
		switch cs.Console.Output {
		case "json", "yaml":
			list = append(list, raw)
		case "jsonl":
			cs.Console.PrintJSONLine(raw)
		default:
			return cs.Console.Write([]byte(term.EventLine(cs.Console.Style, e, estimated) + "\n"))
		}
		return nil
	})
	if flags.follow {
		err = ignoreDetach(err)
	}
	if err != nil || cs.Console.Output != "json" && cs.Console.Output != "yaml" {
		return err
	}
	return cs.Console.PrintData(struct {
		Events []json.RawMessage `json:"events"`
		Cursor string            `json:"cursor"`
	}{list, seen.Text(run)})
}
