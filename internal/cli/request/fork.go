package request

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/exit"
)

// forkFlags are the flags of a request that a fork of a tree may have: everything else is of its original.
var forkFlags = []string{"fork", "instead", "layer", "dir", "agents", "mcp-config", "model", "policy", "max-tokens", "max-budget-usd", "max-tool-calls", "run-id"}

// forksTree reports whether --fork names a point of an agent: then the whole tree is forked.
func (r *Flags) forksTree() bool { return strings.Contains(r.Request.Fork, ":") }

// completeTreeFork makes the request for a fork of a tree. Settings are for new runs, so only flags
// that the user gives count.
func (r *Flags) completeTreeFork(a *console.Console, origins *Origins, c *cobra.Command, args []string) error {
	if answers := r.Request.Instead != ""; answers && (a.Getenv("TROUPE_CALL") != "" || a.Getenv("TROUPE_HOOK") != "") {
		return exit.UsageError("a person forks it, in a terminal of their own",
			"an agent cannot answer questions: this is a tool or a hook of a run")
	}
	known := pflag.NewFlagSet("", pflag.ContinueOnError)
	(&Flags{}).AddFlags(known)
	var refused string
	c.Flags().Visit(func(f *pflag.Flag) {
		if known.Lookup(f.Name) != nil && !slices.Contains(forkFlags, f.Name) {
			refused = f.Name
		}
	})
	if refused != "" {
		return exit.UsageError("leave it out", "a fork of a tree takes --%s from its original", refused)
	}
	if len(args) > 0 {
		if err := r.readPrompt(a, args); err != nil {
			return err
		}
	}
	dir := r.Request.Dir
	if !c.Flags().Changed("dir") {
		dir = ""
	}
	r.Request.Dir = ""
	if err := r.completeFlags(a, origins, c); err != nil {
		return err
	}
	return r.keepForkFields(c, dir)
}

// keepForkFields leaves what a fork of a tree may have.
func (r *Flags) keepForkFields(c *cobra.Command, dir string) error {
	q := r.Request
	kept := client.RunRequest{RunID: q.RunID, Fork: q.Fork, Prompt: q.Prompt, Instead: q.Instead, Layers: q.Layers, Agents: q.Agents, MCPConfig: q.MCPConfig, Policy: q.Policy, Caller: q.Caller, Trace: q.Trace}
	for name, keep := range map[string]func(){"model": func() { kept.Model = q.Model }, "max-tokens": func() { kept.MaxTokens = q.MaxTokens },
		"max-budget-usd": func() { kept.MaxBudgetUSD = q.MaxBudgetUSD }, "max-tool-calls": func() { kept.MaxToolCalls = q.MaxToolCalls }} {
		if c.Flags().Changed(name) {
			keep()
		}
	}
	if dir != "" { // it need not exist
		abs, err := filepath.Abs(dir)
		if err != nil {
			return fmt.Errorf("directory %s: %w", dir, err)
		}
		kept.Dir = abs
	}
	r.Request = kept
	return nil
}
