package runs

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/follow"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/term"
)

// Tree makes the command tree.
func (cs *Commands) Tree() *cobra.Command {
	var follow bool
	c := &cobra.Command{
		Use: "tree RUN", Args: command.Exactly("RUN"),
		Short:       "Show the agents of a run",
		Example:     "  troupe tree 01k9z3\n  troupe tree -f 01k9z3\n  troupe tree -o json 01k9z3 | jq '.agents[] | {id, tokens}'",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			return cs.Sessions.VisitRun(session.ToInspect, args[0], func(ctx context.Context, s *session.Session, run string) error {
				if follow && cs.Console.Output == "table" {
					return ignoreDetach(cs.followTree(ctx, s, run))
				}
				return cs.printTree(ctx, s, run)
			})
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "redraw until the run has ended; Ctrl-C only detaches")
	return c
}

func (cs *Commands) printTree(ctx context.Context, s *session.Session, run string) error {
	if cs.Console.Output != "table" {
		info, err := s.Get(ctx, run)
		if err != nil {
			return err
		}
		if info.Result == nil {
			info.Result = &event.Result{Type: "result", Run: run}
		}
		return cs.Console.PrintData(info.Result)
	}
	var t term.Tree
	err := s.Events(ctx, run, nil, false, func(e client.Event, _ []byte) error {
		t.AddEvent(e)
		return nil
	})
	if err != nil {
		return err
	}
	if err := markInterrupted(ctx, s, run, &t); err != nil {
		return err
	}
	width, _ := term.Size(cs.Console.Out)
	return cs.Console.Write([]byte(strings.Join(t.Lines(cs.Console.Style, time.Now(), width, allLines), "\n") + "\n"))
}

// markInterrupted marks the tree of a run that no process works on.
func markInterrupted(ctx context.Context, s *session.Session, run string, t *term.Tree) error {
	if !t.Ended.IsZero() {
		return nil
	}
	info, err := s.State(ctx, run)
	if err == nil && info.State == client.RunInterrupted {
		t.MarkInterrupted()
	}
	return err
}

// allLines means no limit: output that is not redrawn may be of any length.
const allLines = 1 << 20

// followTree draws the tree until the run has ended.
func (cs *Commands) followTree(ctx context.Context, s *session.Session, run string) error {
	if s.Node != nil || !term.CanDraw(cs.Console.Out, cs.Console.Getenv) {
		return cs.printTree(ctx, s, run)
	}
	live := term.LiveRegion{Out: cs.Console.Out, Size: func() (int, int) { return term.Size(cs.Console.Out) }}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, done := make(chan client.Event, follow.EventBuffer), make(chan error, 1)
	go func() {
		done <- s.Events(ctx, run, nil, true, func(e client.Event, _ []byte) error {
			select {
			case events <- e:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	var t term.Tree
	draw := func() error {
		width, height := live.Size()
		return live.Draw(t.Lines(cs.Console.Style, time.Now(), width-1, height-1))
	}
	tick := time.NewTicker(follow.RedrawInterval)
	defer tick.Stop()
	for {
		select {
		case e := <-events:
			t.AddEvent(e)
		case <-tick.C:
			if err := draw(); err != nil {
				return err
			}
		case err := <-done:
			for len(events) > 0 {
				t.AddEvent(<-events)
			}
			return errors.Join(err, draw())
		}
	}
}
