package tools

import (
	"context"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/interrupt"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/control"
	"github.com/troupe-run/troupe/internal/mcpserver"
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
		RunE: func(*cobra.Command, []string) error {
			abs, err := filepath.Abs(dir)
			if err != nil {
				return exit.UsageError("name an existing directory", "--dir: %v", err)
			}
			return cs.serve(abs, answers)
		},
	}
	c.Flags().StringVar(&dir, "dir", ".", "directory in which runs work whose call names none")
	c.Flags().StringVarP(&cs.Sessions.Model, "model", "m", "", "model of runs whose call names none, PROVIDER/MODEL")
	c.Flags().BoolVar(&answers, "answers", false, "offer the tool answer too: a model that calls it approves what a person is asked about")
	return c
}

// serve serves the protocol until its client leaves.
func (cs *Commands) serve(dir string, answers bool) error {
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
	err = mcpserver.Serve(s.Context, mcpserver.Config{Client: s.Client, Version: control.Version(), Dir: dir, Model: cs.Sessions.Model, Answers: answers, Agents: func() []mcpserver.Agent { return list }},
		os.Stdin, os.Stdout)
	if s.Context.Err() != nil && context.Cause(s.Context) == context.Canceled {
		err = nil // a signal ended it
	}
	if left := s.Leave(context.WithoutCancel(s.Context), ""); err == nil {
		err = left
	}
	return err
}
