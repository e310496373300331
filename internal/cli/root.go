package cli

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/term"
)

// formats is the annotation of a command: which outputs it can write, the
// default first.
const formats = "formats"

// withoutSettings is the annotation of a command that must work whatever the
// files of settings say.
const withoutSettings = "without settings"

const (
	dataFormats = "table json jsonl yaml"
	runFormats  = "text json stream-json yaml"
)

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "troupe",
		Short: "Run a tree of agents, and watch what they say to each other",
		Long: `troupe runs agents as actors whose mailboxes are durable logs. A run survives the
death of the process that hosts it, never spends more than its budget, and
everything its agents say to each other can be watched on NATS.

Without a NATS server and without a key, "troupe run" starts both in process.`,
		Example: `  troupe run --dir . "Investigate this repository and write report.md"
  troupe list
  nats --context troupe sub 'troupe.evt.>' --translate 'troupe fmt'`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		Args:              unknownCommand,
		RunE:              func(c *cobra.Command, _ []string) error { return c.Help() },
		PersistentPreRunE: a.prepare,
	}
	root.SetOut(a.console.out)
	root.SetErr(a.console.err)
	a.globals(root.PersistentFlags())
	root.SetGlobalNormalizationFunc(spelling)
	root.SetFlagErrorFunc(badFlag)
	run := &runCommands{a.console, a.sessions, a.origins}
	runs := &runsCommands{a.console, a.sessions}
	control := &controlCommands{a.console, a.sessions}
	agents := &agentCommands{a.console, a.sessions}
	models := &modelCommands{a.console, a.sessions}
	tools := &toolCommands{a.console, a.sessions}
	nodes := &nodeCommands{a.console, a.sessions}
	evals := &evalCommands{a.console}
	doctor := &doctorCommands{a.console, a.sessions}
	configs := &configCommands{a.console, a.sessions}
	completions := &completionCommands{a.console, a.sessions}
	root.AddCommand(run.runCommand(), run.startCommand(), run.attachCommand(), runs.resultCommand(), runs.listCommand(), runs.treeCommand(),
		runs.eventsCommand(), control.cancelCommand(), control.steerCommand(), control.answerCommand(), control.questionsCommand(), runs.transcriptCommand(),
		runs.exportCommand(), runs.deleteCommand(), runs.pruneCommand(), nodes.nodesCommand(), nodes.upCommand(), evals.evalCommand(), runs.fmtCommand(), doctor.versionCommand())
	root.AddCommand(runs.describeCommand(), runs.timelineCommand(), control.budgetCommand(), agents.agentsCommand(), models.modelsCommand(), tools.toolsCommand(), tools.mcpCommand(),
		doctor.doctorCommand(), configs.configCommand(), completions.completionCommand())
	completions.register(root)
	return root
}

func (a *app) globals(f *pflag.FlagSet) {
	a.sessions.conn.add(f)
	f.StringVar(&a.sessions.storeIn, "store-dir", "", "state directory (default XDG_STATE_HOME/troupe)")
	f.StringVar(&a.sessions.pricing, "pricing-file", "", "prices of models, in the form of models.dev (api.json) or LiteLLM, before those listed")
	f.StringVarP(&a.console.output, "output", "o", "", "output: table, json, jsonl, yaml; for run and start text, json, stream-json, yaml")
	f.BoolVar(&a.console.asJSON, "json", false, "the same as -o json")
	f.StringVar(&a.console.color, "color", "auto", "colour: auto, always, never")
	f.BoolVarP(&a.console.quiet, "quiet", "q", false, "no progress on stderr")
	f.BoolVarP(&a.console.verbose, "verbose", "v", false, "log what the node does on stderr")
}

// connFlags are the flags of the nats CLI.
type connFlags struct{ bus.Options }

func (c *connFlags) add(f *pflag.FlagSet) {
	f.StringVarP(&c.Servers, "server", "s", "", "NATS server URLs (NATS_URL)")
	f.StringVar(&c.Context, "context", "", "nats CLI context (NATS_CONTEXT)")
	f.StringVar(&c.Creds, "creds", "", "user credentials file (NATS_CREDS)")
	f.StringVar(&c.NKey, "nkey", "", "user nkey seed file (NATS_NKEY)")
	f.StringVar(&c.User, "user", "", "user name, or token without --password (NATS_USER)")
	f.StringVar(&c.Password, "password", "", "password (NATS_PASSWORD)")
	f.StringVar(&c.Token, "token", "", "token (NATS_TOKEN)")
	f.StringVar(&c.TLSCert, "tlscert", "", "TLS certificate (NATS_CERT)")
	f.StringVar(&c.TLSKey, "tlskey", "", "TLS private key (NATS_KEY)")
	f.StringVar(&c.TLSCA, "tlsca", "", "TLS certificate authority (NATS_CA)")
}

// environment returns the given options as environment variables for a child process.
func (c *connFlags) environment() []string {
	return []string{"NATS_URL=" + c.Servers, "NATS_CONTEXT=" + c.Context, "NATS_CREDS=" + c.Creds, "NATS_NKEY=" + c.NKey, "NATS_USER=" + c.User,
		"NATS_PASSWORD=" + c.Password, "NATS_TOKEN=" + c.Token, "NATS_CERT=" + c.TLSCert, "NATS_KEY=" + c.TLSKey, "NATS_CA=" + c.TLSCA}
}

// spelling accepts the names that other agent CLIs use: --allowedTools is
// --allowed-tools, --output-format is --output.
func spelling(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	var b strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) {
			b.WriteByte('-')
			r = unicode.ToLower(r)
		}
		if r == '_' {
			r = '-'
		}
		b.WriteRune(r)
	}
	if b.String() == "output-format" {
		return "output"
	}
	return pflag.NormalizedName(b.String())
}

func unknownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := "troupe --help lists the commands"
	var names []string
	for _, sub := range c.Commands() {
		names = append(names, sub.Name())
	}
	if near := config.Near(args[0], names); near != "" {
		hint = "did you mean " + near + "?"
	}
	return usage(hint, "unknown command %q", args[0])
}

// badFlag describes the problem with a flag, and suggests what was probably meant.
func badFlag(c *cobra.Command, err error) error {
	hint := fmt.Sprintf("%s --help lists the flags", c.CommandPath())
	if word, ok := strings.CutPrefix(err.Error(), "unknown flag: --"); ok {
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := config.Near(word, names); near != "" {
			hint = "did you mean --" + near + "?"
		}
	}
	return usage(hint, "%s", err)
}

// prepare reads the settings and decides on output and colour.
func (a *app) prepare(c *cobra.Command, _ []string) error {
	can := strings.Fields(c.Annotations[formats])
	if len(can) > 0 {
		if c.Annotations[withoutSettings] == "" {
			if err := a.apply(c, can); err != nil {
				return err
			}
		}
		if err := a.console.chooseOutput(can); err != nil {
			return err
		}
	}
	on, err := term.Color(a.console.color, term.IsTTY(a.console.out), a.console.getenv)
	if err != nil {
		return usage("--color auto decides by the terminal", "--color is auto, always or never, not %q", a.console.color)
	}
	a.console.style.On = on
	a.console.errors.On, _ = term.Color(a.console.color, term.IsTTY(a.console.err), a.console.getenv) // the same word again
	a.sessions.conn.Options = a.sessions.conn.FromEnv(a.console.getenv)
	return nil
}

// settingPlaces returns the places of the settings of a command. A setting is not read if a
// flag replaces it or if the command does not use it.
func settingPlaces(c *cobra.Command, getenv func(string) string) config.Places {
	dir := "."
	if f := c.Flags().Lookup("dir"); f != nil && f.Value.String() != "" {
		dir = f.Value.String()
	}
	return config.Places{Dir: dir, Getenv: getenv, Settled: func(flag string) bool {
		f := c.Flags().Lookup(flag)
		return f == nil || f.Changed
	}}
}

// apply sets the flags that were not given from the settings.
func (a *app) apply(c *cobra.Command, can []string) error {
	found, err := config.Load(settingPlaces(c, a.console.getenv))
	if err != nil {
		return &failure{code: exitUsage, err: err, hint: "troupe config validate shows all that is wrong"}
	}
	for _, s := range found {
		f := c.Flags().Lookup(s.Flag())
		switch {
		case f == nil || f.Changed:
			continue
		case s.Key == "output" && !slices.Contains(can, s.Value):
			continue // the setting is for other commands
		case s.Key == "model":
			a.sessions.model = s.Value // not as a flag: the node reports where the model was named
			continue
		}
		if s.Key == "json_schema" {
			a.origins.schemaBelow = s.Below
		}
		a.origins.tokensByDirectory = a.origins.tokensByDirectory || s.Key == "max_tokens" && s.Raised
		if err := f.Value.Set(s.Value); err != nil {
			return &failure{code: exitUsage, err: s.Error(err.Error())}
		}
	}
	return nil
}

func (a *console) chooseOutput(can []string) error {
	if a.asJSON {
		if a.output != "" && a.output != "json" {
			return usage("leave one of them out", "--json and -o %s contradict each other", a.output)
		}
		a.output = "json"
	}
	if a.output == "jsonl" && slices.Contains(can, "stream-json") {
		a.output = "stream-json"
	}
	if a.output == "" {
		a.output = can[0]
	}
	if !slices.Contains(can, a.output) {
		bad := a.output
		a.output = ""
		return usage("use one of "+strings.Join(can, ", "), "this command cannot write %q", bad)
	}
	return nil
}

// exactly is how many arguments a command takes, with a message that names them.
func exactly(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return nil
		}
		return usage(c.CommandPath()+" --help shows an example", "%s takes %s, not %d arguments", c.Name(), strings.Join(names, " "), len(args))
	}
}

func none(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usage(c.CommandPath()+" --help shows an example", "%s takes no arguments, not %q", c.Name(), args[0])
}
