package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/troupe-run/troupe/internal/cli/agents"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/completion"
	"github.com/troupe-run/troupe/internal/cli/config"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/control"
	"github.com/troupe-run/troupe/internal/cli/conversations"
	"github.com/troupe-run/troupe/internal/cli/doctor"
	"github.com/troupe-run/troupe/internal/cli/evals"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/memory"
	"github.com/troupe-run/troupe/internal/cli/models"
	"github.com/troupe-run/troupe/internal/cli/nodes"
	"github.com/troupe-run/troupe/internal/cli/page"
	"github.com/troupe-run/troupe/internal/cli/policies"
	"github.com/troupe-run/troupe/internal/cli/recording"
	"github.com/troupe-run/troupe/internal/cli/request"
	"github.com/troupe-run/troupe/internal/cli/rulefiles"
	"github.com/troupe-run/troupe/internal/cli/run"
	"github.com/troupe-run/troupe/internal/cli/runs"
	"github.com/troupe-run/troupe/internal/cli/schedules"
	"github.com/troupe-run/troupe/internal/cli/screen"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/cli/tools"
	"github.com/troupe-run/troupe/internal/term"
)

// newRoot makes the root command with all others.
func (a *app) newRoot() *cobra.Command { return a.newRootFor("") }

// newRootFor makes the root command with the command of that name, or with all if the name is none. To make all takes
// longer than what a short command does.
func (a *app) newRootFor(name string) *cobra.Command {
	root := &cobra.Command{
		Use:   "troupe",
		Short: "Run a tree of agents, and watch what they say to each other",
		Long: `troupe runs agents as actors whose mailboxes are durable logs. A run survives the
death of the process that hosts it, never spends more than its budget, and
everything its agents say to each other can be watched on NATS.

"troupe run" needs neither a NATS server nor a key: it starts a node with its own
server, and without a key it investigates with the built-in model.`,
		Example: `  troupe run --dir . "Investigate this repository and write report.md"
  troupe list
  nats --context troupe sub 'troupe.evt.>' --translate 'troupe fmt'`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		Args:              command.RejectUnknown,
		RunE:              func(c *cobra.Command, _ []string) error { return c.Help() },
		PersistentPreRunE: a.prepareCommand,
	}
	// a template of our own would link text/template: 6 MB
	root.Version = strings.TrimPrefix(doctor.VersionText(), root.Name()+" ")
	root.SetOut(a.console.Out)
	root.SetErr(a.console.Err)
	a.addGlobalFlags(root.PersistentFlags())
	root.SetGlobalNormalizationFunc(command.NormalizeFlag)
	root.SetFlagErrorFunc(command.ExplainFlagError)
	root.CompletionOptions.DisableDefaultCmd = true // there is one of our own
	a.addCommands(root, name)
	groupFlags(root, a.console.Out)
	fillHelp(root, a.console.Out)
	return root
}

// lazyCommand is a command that is made if it is needed.
type lazyCommand struct {
	name string
	make func() *cobra.Command
}

// commandGroup is a group of commands of the help.
type commandGroup struct {
	title    string
	commands []lazyCommand
}

// addCommands adds the command of that name, or all if there is none, in the groups in which the help lists them.
func (a *app) addCommands(root *cobra.Command, name string) {
	groups := a.commandGroups()
	isNamed := func(c lazyCommand) bool { return c.name == name }
	all := name == "" || !slices.ContainsFunc(groups, func(g commandGroup) bool { return slices.ContainsFunc(g.commands, isNamed) })
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title + ":"})
		for _, c := range g.commands {
			if all || isNamed(c) {
				made := c.make()
				made.GroupID = g.title
				root.AddCommand(made)
			}
		}
	}
	root.SetHelpCommandGroupID(groups[len(groups)-1].title)
	if all {
		root.AddCommand(connectionTopic(root.PersistentFlags()), environmentTopic())
	}
	root.InitDefaultHelpCmd()
	help, _, _ := root.Find([]string{"help"}) // it is there
	help.Args = rejectUnknownTopic
}

// commandGroups are the commands in the groups of the help. One without a name needs all others.
func (a *app) commandGroups() []commandGroup {
	start := run.Commands{Console: a.console, Sessions: a.sessions, Origins: a.origins}
	show := runs.Commands{Console: a.console, Sessions: a.sessions}
	watch := screen.Commands{Console: a.console, Sessions: a.sessions, Begin: start.Begin(a.applySettings)}
	browser := page.Commands{Console: a.console, Sessions: a.sessions}
	steer := control.Commands{Console: a.console, Sessions: a.sessions}
	rules := policies.Commands{Console: a.console, Sessions: a.sessions}
	written := rulefiles.Commands{Console: a.console, Sessions: a.sessions}
	talks := conversations.Commands{Console: a.console, Sessions: a.sessions}
	timed := schedules.Commands{Console: a.console, Sessions: a.sessions}
	recorded := recording.Commands{Console: a.console, Sessions: a.sessions}
	agentFiles := agents.Commands{Console: a.console, Sessions: a.sessions}
	routes := models.Commands{Console: a.console, Sessions: a.sessions}
	toolset := tools.Commands{Console: a.console, Sessions: a.sessions}
	notes := memory.Commands{Console: a.console, Sessions: a.sessions}
	fleet := nodes.Commands{Console: a.console, Sessions: a.sessions}
	cases := evals.Commands{Console: a.console}
	checks := doctor.Commands{Console: a.console, Sessions: a.sessions}
	settings := config.Commands{Console: a.console, Sessions: a.sessions}
	return []commandGroup{
		{"Run and follow", []lazyCommand{{"run", start.Run}, {"start", start.Start}, {"chat", start.Chat}, {"follow", start.Follow},
			{"attach", func() *cobra.Command { return oldAttach(start) }}, {"result", show.Result}, {"demo", start.Demo}, {"top", watch.Top}, {"ui", browser.UI}}},
		{"Conversations and schedules", []lazyCommand{{"conversations", talks.Conversations}, {"lanes", talks.Lanes}, {"schedules", timed.Schedules}}},
		{"Answer and stop", []lazyCommand{{"questions", steer.Questions}, {"answer", steer.Answer}, {"steer", steer.Steer}, {"context", steer.Context},
			{"backlog", steer.Backlog}, {"budget", steer.Budget}, {"permissions", func() *cobra.Command { return written.AddTo(steer.Permissions()) }},
			{"policy", rules.Policy}, {"cancel", steer.Cancel}}},
		{"Inspect and remove runs", []lazyCommand{{"list", show.List}, {"describe", show.Describe}, {"tree", show.Tree}, {"events", show.Events},
			{"timeline", show.Timeline}, {"report", show.Report}, {"audit", show.Audit}, {"transcript", show.Transcript}, {"export", show.Export},
			{"delete", show.Delete}, {"prune", show.Prune}, {"fmt", show.Format}}},
		{"Replay and verify runs", []lazyCommand{{"replay", recorded.Replay}, {"verify", recorded.Verify}, {"compare", recorded.Compare},
			{"fixture", recorded.Fixture}, {"dump", recorded.Dump}, {"restore", recorded.Restore}}},
		{"Files that runs change", []lazyCommand{{"diff", recorded.Diff}, {"undo", recorded.Undo}}},
		{"Agents, models and tools", []lazyCommand{{"agents", agentFiles.Agents}, {"models", routes.Models}, {"tools", toolset.Tools}, {"mcp", toolset.MCP},
			{"memory", notes.Memory}}},
		{"Nodes", []lazyCommand{{"nodes", fleet.Nodes}, {"up", fleet.Up}}},
		{"Configure and verify", []lazyCommand{{"config", settings.Config}, {"doctor", checks.Doctor}, {"eval", cases.Eval},
			{"completion", a.completion().Completion}, {"", a.manCommand}, {"version", checks.Version}}},
	}
}

// oldAttach is follow under its earlier name, which programs call. Help and reference do not show it: attaching is for
// files of a prompt.
func oldAttach(start run.Commands) *cobra.Command {
	c := start.Follow()
	c.Example = strings.ReplaceAll(c.Example, c.Name(), "attach")
	c.Use, c.Hidden = strings.Replace(c.Use, c.Name(), "attach", 1), true
	return c
}

// rejectUnknownTopic fails for what is neither a command nor a topic of the help.
func rejectUnknownTopic(c *cobra.Command, args []string) error {
	found, rest, err := c.Root().Find(args)
	if err != nil || len(rest) > 0 {
		return command.RejectUnknown(found, rest)
	}
	return nil
}

func (a *app) completion() *completion.Commands {
	return &completion.Commands{Console: a.console, Sessions: a.sessions}
}

// isCompletion reports whether a shell asks for the words that may follow.
func isCompletion(args []string) bool {
	return len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd)
}

// addGlobalFlags adds the flags of every command.
func (a *app) addGlobalFlags(f *pflag.FlagSet) {
	a.sessions.Conn.AddFlags(f)
	hideConnectionFlags(f)
	f.StringVar(&a.sessions.StateDir, "store-dir", "", "state directory (default XDG_STATE_HOME/troupe)")
	f.StringVar(&a.sessions.PricingFile, "pricing-file", "",
		"model prices as models.dev (api.json) or LiteLLM JSON; takes precedence over the built-in list")
	f.StringVarP(&a.console.Output, "output", "o", "",
		"output: table, json, jsonl, yaml; for run and start text, json, stream-json, yaml")
	f.BoolVar(&a.console.JSON, "json", false, "the same as -o json")
	f.StringVar(&a.console.Color, "color", "auto", "colour: auto, always, never")
	f.BoolVarP(&a.console.Quiet, "quiet", "q", false, "no progress on stderr")
	f.BoolVarP(&a.console.Verbose, "verbose", "v", false,
		"log what the node does on stderr, and print the address of its server above a run")
}

// prepareCommand reads the settings and decides on output and colour.
func (a *app) prepareCommand(c *cobra.Command, _ []string) error {
	can := strings.Fields(c.Annotations[command.Formats])
	if len(can) > 0 {
		if c.Annotations[command.WithoutSettings] == "" {
			if err := a.applySettings(c, can, a.sessions, a.origins); err != nil {
				return err
			}
		}
		if err := a.console.ChooseOutput(can); err != nil {
			return err
		}
	}
	on, err := term.UseColor(a.console.Color, term.IsTTY(a.console.Out), a.console.Getenv)
	if err != nil {
		return exit.UsageError("--color auto decides by the terminal",
			"--color is auto, always or never, not %q", a.console.Color)
	}
	a.console.Style.On = on
	// the same word again
	a.console.ErrStyle.On, _ = term.UseColor(a.console.Color, term.IsTTY(a.console.Err), a.console.Getenv)
	a.sessions.Conn.RememberGiven()
	a.sessions.Conn.Options = a.sessions.Conn.FromEnv(a.console.Getenv)
	return nil
}

// applySettings applies the settings of the file and the environment to a command: a run.ApplySettings.
func (a *app) applySettings(c *cobra.Command, can []string, sessions *session.Opener, origins *request.Origins) error {
	found, err := command.LoadSettings(c, a.console.Getenv)
	if known := (*exit.Failure)(nil); errors.As(err, &known) {
		return known
	}
	if err != nil {
		return &exit.Failure{Code: exit.Usage, Err: err, Hint: "troupe config validate shows all that is wrong"}
	}
	sessions.RequestRates, sessions.TokenRates = found["requests_per_minute"].Value, found["tokens_per_minute"].Value
	for _, s := range found {
		f := c.Flags().Lookup(s.Flag())
		switch {
		case f == nil || f.Changed && !slices.Contains(request.SentenceFlags, f.Name):
			continue
		case s.Key == "output" && !slices.Contains(console.Outputs, s.Value):
			return exit.UsageError("use one of "+strings.Join(console.Outputs, ", "), "%s", s.Error(fmt.Sprintf("no command can write %q", s.Value)))
		case s.Key == "color" && !slices.Contains(term.ColorWords, s.Value):
			return exit.UsageError("use one of "+strings.Join(term.ColorWords, ", "), "%s", s.Error(fmt.Sprintf("it is auto, always or never, not %q", s.Value)))
		case s.Key == "output" && !slices.Contains(can, s.Value):
			continue // the setting is for other commands
		case s.Key == "model":
			sessions.Model = s.Value // not as a flag: the node reports where the model was named
			continue
		}
		if s.Key == "json_schema" {
			origins.SchemaBelow = s.Below
		}
		origins.TokensByDirectory = origins.TokensByDirectory || s.Key == "max_tokens" && s.Raised
		if err := f.Value.Set(s.Value); err != nil {
			return &exit.Failure{Code: exit.Usage, Err: s.Error(err.Error())}
		}
	}
	return nil
}
