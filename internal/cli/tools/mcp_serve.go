package tools

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/interrupt"
	"github.com/troupe-run/troupe/internal/cli/request"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/control"
	"github.com/troupe-run/troupe/internal/mcpserver"
	"github.com/troupe-run/troupe/internal/node"
	"github.com/troupe-run/troupe/internal/workdir"
)

func (cs *Commands) serveCommand() *cobra.Command {
	var dir string
	var answers bool
	c := &cobra.Command{
		Use: "serve", Args: command.NoArguments,
		Short: "Offer runs and agents as MCP tools on standard input and output",
		Long: `Offer runs and agents as tools of the Model Context Protocol, on standard input and
output: list_runs, run, get, cancel, and agent_NAME for each exported agent. An MCP
client starts this command. It uses the node that is running, or is one until the client
closes its standard input: then the runs of agents' tools that are called are canceled,
and other runs are continued by the next node.`,
		Example: `  troupe mcp serve --dir ~/project
  troupe mcp serve --dir . --model anthropic/claude-sonnet-4-5`,
		Annotations: map[string]string{command.Formats: "text"},
		RunE: func(c *cobra.Command, _ []string) error {
			if err := request.AbsoluteDir(&dir); err != nil {
				return err
			}
			return cs.serve(dir, c.Flags().Changed("dir"), answers)
		},
	}
	c.Flags().StringVar(&dir, "dir", ".", "directory in which runs work whose call names none")
	c.Flags().StringVarP(&cs.Sessions.Model, "model", "m", "", "model of runs whose call names none, PROVIDER/MODEL")
	c.Flags().BoolVar(&answers, "answers", false, "offer the tool answer too: a model that calls it approves what a person is asked about")
	return c
}

// serve serves the protocol until its client leaves. A server elsewhere is told a directory only if the user named it.
func (cs *Commands) serve(dir string, named, answers bool) error {
	sig := interrupt.Catch()
	defer sig.Stop()
	s, err := cs.Sessions.Open(sig.Starting, session.ToRun, dir)
	if err != nil {
		return err
	}
	list, err := mcpserver.ListAgents()
	if err != nil {
		cs.Console.Logger().Warn("some agent files of the user are broken", "error", err)
	}
	cfg := mcpserver.Config{Client: s.Client, Version: control.Version(), Dir: dir, Model: cs.Sessions.Model, Answers: answers, Agents: func() []mcpserver.Agent { return list }}
	if !s.IsElsewhere() {
		cfg.Prepare = func(r *client.RunRequest) error { return bringDir(statedir.StateDir(cs.Sessions.StateDir), dir, r) }
	} else if !named {
		cfg.Dir = ""
	}
	err = mcpserver.Serve(s.Context, cfg, os.Stdin, os.Stdout)
	switch cause := context.Cause(s.Context); {
	case cause == nil:
	case errors.Is(cause, context.Canceled):
		err = nil // a signal ended it
	default:
		err = fmt.Errorf("%w: %w", client.ErrUnavailable, cause)
	}
	return errors.Join(err, s.Leave(context.WithoutCancel(s.Context), ""))
}

// bringDir lets a request of an MCP client work in a directory at or below the one that the user named, also on a node
// that another command of the user has started elsewhere.
func bringDir(stateDir, dir string, r *client.RunRequest) error {
	if !filepath.IsAbs(r.Dir) {
		r.Dir = filepath.Join(dir, r.Dir)
	}
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return fmt.Errorf("directory of the server: %w", err)
	}
	real, err := filepath.EvalSymlinks(r.Dir)
	if err != nil {
		return fmt.Errorf("directory of the run: %w", err)
	}
	if !workdir.IsBelow(root, real) {
		return fmt.Errorf("the directory %s is not below %s, which --dir of troupe mcp serve names", r.Dir, dir)
	}
	return node.BringDir(node.Config{StateDir: stateDir}, *r)
}
