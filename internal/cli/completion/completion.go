// Package completion completes commands, flags, run ids and agents in a shell.
package completion

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/internal/cli/agents"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/term"
)

// Commands complete words in a shell.
type Commands struct {
	Console  *console.Console
	Sessions *session.Opener
}

// shells that completion knows.
var shells = []string{"bash", "zsh", "fish", "powershell"}

// Completion makes the command completion.
func (cs *Commands) Completion() *cobra.Command {
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print a shell completion script, also for run ids and agents",
		Long:  "Print a script for " + strings.Join(shells, ", ") + ". Ids of runs and names of agents are completed as\nthey are at that moment.",
		Example: `  source <(troupe completion bash)
  troupe completion zsh > "${fpath[1]}/_troupe"
  troupe completion fish > ~/.config/fish/completions/troupe.fish
  troupe completion powershell | Out-String | Invoke-Expression`,
		Annotations: map[string]string{command.Formats: command.DataFormats, command.WithoutSettings: "yes"},
		ValidArgs:   shells,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 1 && !slices.Contains(shells, args[0]) {
				return exit.UsageError("use one of "+strings.Join(shells, ", "), "there is no completion for %q", args[0])
			}
			return command.Exactly("SHELL")(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			var b bytes.Buffer
			if err := writeScript(c.Root(), args[0], &b); err != nil {
				return fmt.Errorf("completion: %w", err)
			}
			if cs.Console.Output != "table" {
				return cs.Console.PrintData(map[string]string{"shell": args[0], "script": b.String()})
			}
			return cs.Console.Write(b.Bytes())
		},
	}
}

func writeScript(root *cobra.Command, shell string, b *bytes.Buffer) error {
	switch shell {
	case "bash":
		return root.GenBashCompletionV2(b, true)
	case "zsh":
		return root.GenZshCompletion(b)
	case "fish":
		return root.GenFishCompletion(b, true)
	}
	return root.GenPowerShellCompletionWithDesc(b)
}

// completeTimeout bounds how long a shell waits: an empty list does no harm.
const completeTimeout = 1500 * time.Millisecond

// Register adds to every command what its arguments can be: ids of runs where
// it takes one, agents for --agent, formats for -o.
func (cs *Commands) Register(c *cobra.Command) {
	for _, sub := range c.Commands() {
		cs.Register(sub)
	}
	if c.ValidArgs == nil && c.ValidArgsFunction == nil {
		c.ValidArgsFunction = cs.completeArguments(c)
	}
	if can := strings.Fields(c.Annotations[command.Formats]); len(can) > 0 && c.InheritedFlags().Lookup("output") != nil {
		// once for each command
		_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(can, cobra.ShellCompDirectiveNoFileComp))
	}
	if f := c.LocalFlags().Lookup("agent"); f != nil {
		_ = c.RegisterFlagCompletionFunc("agent", cs.completeAgent(c)) // the flag is there
	}
}

// completeArguments completes the first word of a command by its name in the usage line.
func (cs *Commands) completeArguments(c *cobra.Command) cobra.CompletionFunc {
	words := strings.Fields(c.Use)
	return func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(words) < 2 || len(args) > 0 {
			return cs.completeSecond(words, args)
		}
		switch {
		case words[1] == "RUN", words[1] == "[RUN]":
			return cs.completeRunIDs(), cobra.ShellCompDirectiveNoFileComp
		case words[1] == "NAME":
			return cs.completeAgentNames(), cobra.ShellCompDirectiveNoFileComp
		case strings.Contains(words[1], "FILE"):
			return nil, cobra.ShellCompDirectiveDefault
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeSecond completes a word behind a run: `budget RUN [set|freeze]`.
func (cs *Commands) completeSecond(words, args []string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 && len(args)+1 < len(words) && strings.Contains(words[len(args)+1], "|") {
		var list []cobra.Completion
		for choice := range strings.SplitSeq(strings.Trim(words[len(args)+1], "[]"), "|") {
			if choice == strings.ToLower(choice) {
				list = append(list, choice)
			}
		}
		return list, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// completeAgent completes --agent: with a run its agents, else what can be run.
func (cs *Commands) completeAgent(c *cobra.Command) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if !strings.Contains(c.Use, "RUN") || len(args) == 0 {
			return cs.completeAgentNames(), cobra.ShellCompDirectiveNoFileComp
		}
		var list []cobra.Completion
		cs.askNode(func(ctx context.Context, s *session.Session) error {
			run, err := s.FindRun(ctx, args[0])
			if err != nil {
				return err
			}
			info, err := s.Get(ctx, run)
			for _, m := range session.AgentResults(info.Result) {
				list = append(list, cobra.CompletionWithDesc(string(m.ID), term.CleanLine(m.Name)))
			}
			return err
		})
		return list, cobra.ShellCompDirectiveNoFileComp
	}
}

// askNode asks a node for a completion. It drops errors, because a shell cannot show them.
func (cs *Commands) askNode(do func(context.Context, *session.Session) error) {
	ctx, end := context.WithTimeout(context.Background(), completeTimeout)
	defer end()
	cs.Console.Verbose = false
	cs.Sessions.Conn.Options = cs.Sessions.Conn.FromEnv(cs.Console.Getenv)
	if cs.Sessions.CheckState() != nil {
		return
	}
	s, err := cs.Sessions.Open(ctx, session.ToInspect)
	if err != nil {
		return
	}
	_ = do(ctx, s)
	_ = s.Close()
}

// runsCompleted is how many runs a shell offers: the newest.
const runsCompleted = 50

func (cs *Commands) completeRunIDs() (list []cobra.Completion) {
	cs.askNode(func(ctx context.Context, s *session.Session) error {
		runs, err := s.List(ctx)
		for i, r := range runs {
			if i == runsCompleted {
				break
			}
			list = append(list, cobra.CompletionWithDesc(term.CleanLine(r.RunID), term.CleanLine(string(r.State)+": "+r.Title)))
		}
		return err
	})
	return list
}

func (cs *Commands) completeAgentNames() (list []cobra.Completion) {
	g := agents.Sources{Dir: "."}
	r, err := g.ReadRoster()
	if err != nil {
		return nil
	}
	for _, i := range r.Agents {
		list = append(list, cobra.CompletionWithDesc(i.Name, term.CleanLine(i.Description)))
	}
	return list
}
