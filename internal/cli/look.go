package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/term"
)

// visit runs a function on a node, and closes what it opened.
func (a *opener) visit(why purpose, do func(ctx context.Context, s *seat) error) error {
	sig := catch()
	defer sig.stop()
	s, err := a.sit(sig.starting, why)
	if err != nil {
		return err
	}
	err = do(s.ctx, s)
	if errors.Is(context.Cause(s.ctx), errGone) && (client.Lost(err) || errors.Is(err, context.Canceled)) {
		err = errors.Join(client.ErrUnavailable, err)
	}
	return errors.Join(err, s.Close())
}

func (a *runsCommands) listCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Args: none,
		Short:       "List the runs, newest first",
		Example:     "  troupe list\n  troupe list -o json | jq -r '.[] | select(.state != \"finished\") | .run_id'",
		Annotations: map[string]string{formats: dataFormats},
		RunE: func(*cobra.Command, []string) error {
			return a.sessions.visit(toLook, func(ctx context.Context, s *seat) error {
				list, err := s.List(ctx)
				if err != nil {
					return err
				}
				if a.console.output != "table" {
					return a.console.printData(list)
				}
				rows := make([][]string, len(list))
				for i, r := range list {
					rows[i] = runRow(r)
				}
				head := []string{"RUN", "STATE", "STOP", "TURNS", "TOKENS", "COST", "AGE", "TITLE"}
				if width, _ := term.Size(a.console.out); term.IsTTY(a.console.out) && width < wideColumns {
					for i := range rows { // the subject of a run matters more than its cost
						rows[i] = slices.Delete(rows[i], 3, 6)
					}
					head = slices.Delete(head, 3, 6)
				}
				return a.console.table(head, rows)
			})
		},
	}
}

const (
	titleColumns = 50
	wideColumns  = 110 // of a terminal in which a row with its title has room
)

func runRow(r client.RunInfo) []string {
	row := []string{term.Line(r.RunID), stateOf(r), "-", "-", "-", "-", age(r.Started), term.Cut(term.Line(r.Title), titleColumns)}
	if d := r.Result; d != nil {
		row[2] = term.Line(string(d.Reason))
		row[3] = fmt.Sprint(d.Turns)
		row[4] = term.Tokens(d.Budget.Used) + "/" + term.Tokens(d.Budget.Limit)
		row[5] = cost(d.CostUSD, d.CostKnown)
	}
	return row
}

// stateOf is the state of a run, with its place in the queue.
func stateOf(r client.RunInfo) string {
	if r.Position > 0 {
		return fmt.Sprintf("%s %d", term.Line(r.State), r.Position)
	}
	return term.Line(r.State)
}

func cost(usd float64, known bool) string {
	switch {
	case !known:
		return "unknown"
	case usd == 0:
		return "-"
	}
	return fmt.Sprintf("$%.4f", usd)
}

func (a *runsCommands) resultCommand() *cobra.Command {
	var wait bool
	c := &cobra.Command{
		Use: "result RUN", Args: exactly("RUN"),
		Short:       "Print the result of a run; the exit code is that of the run",
		Example:     "  troupe result 01k9z3\n  troupe result --wait -o json 01k9z3 | jq -r .result",
		Annotations: map[string]string{formats: runFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			return a.sessions.visit(toLook, func(ctx context.Context, s *seat) error { return a.result(ctx, s, args[0], wait) })
		},
	}
	c.Flags().BoolVar(&wait, "wait", false, "wait until the run has ended")
	return c
}

func (a *runsCommands) result(ctx context.Context, s *seat, run string, wait bool) error {
	info, err := s.Get(ctx, run)
	for err == nil && wait && info.State != "finished" {
		if s.host != nil {
			return notRunning(run)
		}
		if info, err = s.Wait(ctx, run); err == nil && info.State == "parked" {
			err = pause(ctx, askPause) // it continues once a person has answered
		}
	}
	if err != nil {
		return err
	}
	if info.Result == nil {
		return errors.New("the run has no result yet")
	}
	if info.State == "live" || info.State == "queued" {
		info.Result.Partial = true
		if a.console.output == "text" {
			return &failure{exitFailed, fmt.Errorf("run %s has not ended", run), "troupe result --wait waits for it"}
		}
	}
	if err := a.console.printResult(*info.Result); err != nil {
		return err
	}
	return ended(exitCode(info.Result.Reason, false))
}

// notRunning is the error for a run to wait for that no node continues.
func notRunning(run string) error {
	return &failure{exitNoNode, fmt.Errorf("no node runs %s", run), "troupe run --resume " + run + " continues it"}
}

func (a *runsCommands) treeCommand() *cobra.Command {
	var follow bool
	c := &cobra.Command{
		Use: "tree RUN", Args: exactly("RUN"),
		Short:       "Show the agents of a run",
		Example:     "  troupe tree 01k9z3\n  troupe tree -f 01k9z3\n  troupe tree -o json 01k9z3 | jq '.agents[] | {id, tokens}'",
		Annotations: map[string]string{formats: dataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			return a.sessions.visit(toLook, func(ctx context.Context, s *seat) error {
				if follow && a.console.output == "table" {
					return detachable(a.treeLive(ctx, s, args[0]))
				}
				return a.tree(ctx, s, args[0])
			})
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "draw it again until the run has ended; Ctrl-C only detaches")
	return c
}

// detachable treats Ctrl-C as the normal end of a command that only observes.
func detachable(err error) error {
	if errors.Is(err, context.Canceled) && !client.Lost(err) {
		return nil
	}
	return err
}

func (a *runsCommands) tree(ctx context.Context, s *seat, run string) error {
	if a.console.output != "table" {
		info, err := s.Get(ctx, run)
		if err != nil {
			return err
		}
		if info.Result == nil {
			info.Result = &event.Result{Type: "result", Run: run}
		}
		return a.console.printData(info.Result)
	}
	var t term.Tree
	err := s.Events(ctx, run, nil, false, func(e client.Event, _ []byte) error {
		t.Take(e)
		return nil
	})
	if err != nil {
		return err
	}
	width, _ := term.Size(a.console.out)
	return a.console.put([]byte(strings.Join(t.Lines(a.console.style, time.Now(), width, allLines), "\n") + "\n"))
}

// allLines means no limit: output that is not redrawn may be of any length.
const allLines = 1 << 20

// treeLive draws the tree until the run has ended.
func (a *runsCommands) treeLive(ctx context.Context, s *seat, run string) error {
	if s.host != nil || !term.Is(a.console.out, a.console.getenv) {
		return a.tree(ctx, s, run)
	}
	live := term.Live{Out: a.console.out, Size: func() (int, int) { return term.Size(a.console.out) }}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, done := make(chan client.Event, watchAhead), make(chan error, 1)
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
		return live.Draw(t.Lines(a.console.style, time.Now(), width-1, height-1))
	}
	tick := time.NewTicker(drawPause)
	defer tick.Stop()
	for {
		select {
		case e := <-events:
			t.Take(e)
		case <-tick.C:
			if err := draw(); err != nil {
				return err
			}
		case err := <-done:
			for len(events) > 0 {
				t.Take(<-events)
			}
			return errors.Join(err, draw())
		}
	}
}
