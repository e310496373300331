package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/term"
)

type eventFlags struct {
	follow bool
	from   string
	kinds  []string
}

func (a *runsCommands) eventsCommand() *cobra.Command {
	var flags eventFlags
	c := &cobra.Command{
		Use: "events RUN", Args: exactly("RUN"),
		Short: "Show what happened in a run",
		Long: `Show the events of a run, from its logs: nothing is missing, also after a crash.

With -o jsonl each line is one event as it is on NATS. With -o json the document
holds the events and a cursor: --from CURSOR shows what came after it.`,
		Example:     "  troupe events 01k9z3 -f\n  troupe events 01k9z3 --kind tool.started,tool.finished -o jsonl\n  troupe events 01k9z3 -o json | jq -r .cursor",
		Annotations: map[string]string{formats: dataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			return a.sessions.visit(toLook, func(ctx context.Context, s *seat) error { return a.events(ctx, s, args[0], flags) })
		},
	}
	c.Flags().BoolVarP(&flags.follow, "follow", "f", false, "go on until the run has ended; Ctrl-C only detaches")
	c.Flags().StringVar(&flags.from, "from", "", "only what came after this cursor")
	c.Flags().StringSliceVar(&flags.kinds, "kind", nil, "only these kinds, or their first words (tool, turn.started)")
	return c
}

// wants reports whether a kind was asked for.
func (f eventFlags) wants(kind string) bool {
	first, _, _ := strings.Cut(kind, ".")
	return len(f.kinds) == 0 || slices.Contains(f.kinds, kind) || slices.Contains(f.kinds, first)
}

func (a *runsCommands) events(ctx context.Context, s *seat, run string, flags eventFlags) error {
	from, err := decodeCursor(flags.from)
	if err != nil {
		return err
	}
	if flags.follow && s.host != nil {
		if info, err := s.Get(ctx, run); err != nil {
			return err
		} else if info.State != "finished" {
			return notRunning(run)
		}
		flags.follow = false
	}
	seen, list := places{}, []json.RawMessage{}
	err = s.Events(ctx, run, from, flags.follow, func(e client.Event, raw []byte) error {
		if !seen.fresh(e) || !flags.wants(e.Kind) {
			return nil
		}
		switch a.console.output {
		case "json", "yaml":
			list = append(list, raw)
		case "jsonl":
			a.console.line(raw)
		default:
			return a.console.put([]byte(term.EventLine(a.console.style, e) + "\n"))
		}
		return nil
	})
	if flags.follow {
		err = detachable(err)
	}
	if err != nil || a.console.output != "json" && a.console.output != "yaml" {
		return err
	}
	after := from
	for at, n := range seen.whole() {
		after[at] = n
	}
	cursor, err := encodeCursor(after)
	if err != nil {
		return fmt.Errorf("cursor: %w", err)
	}
	return a.console.printData(struct {
		Events []json.RawMessage `json:"events"`
		Cursor string            `json:"cursor"`
	}{list, cursor})
}

func (a *runCommands) attachCommand() *cobra.Command {
	return &cobra.Command{
		Use: "attach RUN", Args: exactly("RUN"),
		Short:       "Follow a run that a node runs, and print its result; Ctrl-C only detaches",
		Example:     "  troupe attach 01k9z3",
		Annotations: map[string]string{formats: runFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			return a.sessions.visit(toLook, func(ctx context.Context, s *seat) error { return a.attach(ctx, s, args[0]) })
		},
	}
}

// attach shows a run without having anything to say about it.
func (a *runCommands) attach(ctx context.Context, s *seat, run string) error {
	info, err := s.Get(ctx, run)
	if err != nil {
		return err
	}
	if info.State != "finished" && s.host != nil {
		return notRunning(run)
	}
	quiet := &signals{} // nothing stops the run from here
	f := newFollower(a.console, run, quiet)
	f.person = nil
	end, err := f.watch(s)
	if errors.Is(err, context.Canceled) && !s.gone(err) {
		f.rest()
		a.console.say("detached; the run goes on: troupe attach " + run)
		return nil
	}
	if err != nil {
		return err
	}
	f.rest()
	hintParked(a.console, run, end)
	if err := a.console.printResult(end.result); err != nil {
		return err
	}
	return ended(exitCode(end.result.Reason, false))
}
