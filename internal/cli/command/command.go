// Package command holds what the commands have in common: the checks of arguments, the names
// of formats and the spelling of flags.
package command

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/troupe-run/troupe/internal/amount"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/lazyregexp"
)

// Group is a command that only holds others.
func Group(use, short, long, example string) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Long: long, Example: example, Args: RejectUnknown,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
}

// Formats is the annotation of a command: which outputs it can write, the
// default first.
const Formats = "formats"

// WithoutSettings is the annotation of a command that must work whatever the
// files of settings say.
const WithoutSettings = "without settings"

// The formats of commands that print data, and of those that print the result of a run.
const (
	DataFormats = "table json jsonl yaml"
	RunFormats  = "text json stream-json yaml"
)

// AgentFlag is the help of a flag that names an agent of a run.
const AgentFlag = "the agent's id, or its name if only one agent has it"

// NormalizeFlag accepts the names that other agent CLIs use: --allowedTools is
// --allowed-tools, --output-format is --output.
func NormalizeFlag(_ *pflag.FlagSet, name string) pflag.NormalizedName {
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

// commandsElsewhere are names that other programs have for commands of troupe.
var commandsElsewhere = map[string]string{"stop": "cancel", "kill": "cancel", "abort": "cancel", "ps": "list", "ls": "list", "logs": "events", "log": "events",
	"resume": "run --resume RUN", "continue": "run --resume RUN", "status": "describe", "show": "describe", "inspect": "describe",
	"watch": "follow", "tail": "follow"}

// RejectUnknown fails for a word that is no command, with the one that was probably meant.
func RejectUnknown(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := c.CommandPath() + " --help lists the commands"
	var names []string
	for _, sub := range c.Commands() {
		names = append(names, sub.Name())
	}
	near := config.NearestName(args[0], names)
	if other := commandsElsewhere[args[0]]; other != "" && !c.HasParent() {
		near = other
	}
	if near != "" {
		hint = "did you mean " + near + "?"
	}
	return exit.UsageError(hint, "unknown command %q", args[0])
}

// ExplainFlagError describes the problem with a flag, and suggests what was probably meant.
func ExplainFlagError(c *cobra.Command, err error) error {
	hint := fmt.Sprintf("%s --help lists the flags", c.CommandPath())
	if word, ok := strings.CutPrefix(err.Error(), "unknown flag: --"); ok {
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		near := config.NearestName(word, names)
		if slices.Contains(names, "max-"+word) {
			near = "max-" + word
		}
		if near != "" {
			hint = "did you mean --" + near + "?"
		}
	}
	if m := invalidValue.FindStringSubmatch(err.Error()); m != nil {
		if f := c.Flags().Lookup(m[2]); f != nil && flagValues[f.Value.Type()] != "" {
			return exit.UsageError(hint, "--%s %q: expected %s", m[2], m[1], flagValues[f.Value.Type()])
		}
	}
	return exit.UsageError(hint, "%s", err)
}

// invalidValue matches the error of pflag about a value, whose second half is in the words of strconv.
var invalidValue = lazyregexp.New(`^invalid argument "(.*)" for "(?:-\w, )?--([\w-]+)" flag: `)

// flagValues says in words what a type of flag takes.
var flagValues = map[string]string{"int": "a whole number, such as 20", "int64": "a whole number, such as 20000", "float64": "a number, such as 0.5",
	"tokens": amount.ErrTokens.Error(), "usd": amount.ErrUSD.Error(),
	"duration": "a duration with a unit, such as 90s, 15m or 2h", "bool": "true or false"}

// LoadSettings reads the settings of a command. A setting is not read if a flag replaces it or
// if the command does not use it.
func LoadSettings(c *cobra.Command, getenv func(string) string) (map[string]config.Setting, error) {
	dir := "."
	if f := c.Flags().Lookup("dir"); f != nil && f.Value.String() != "" {
		dir = f.Value.String()
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, exit.UsageError("--dir takes a directory, such as "+filepath.Dir(dir)+"; name the file in the prompt, or send it with --attach", "--dir %s is a file", dir)
	}
	return config.Load(config.SettingSources{Dir: dir, Getenv: getenv, Settled: func(flag string) bool {
		f := c.Flags().Lookup(flag)
		return f == nil || f.Changed
	}})
}

// Exactly is how many arguments a command takes, with a message that names them.
func Exactly(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return nil
		}
		count := fmt.Sprintf("%d arguments", len(args))
		if len(args) == 1 {
			count = "1 argument"
		}
		return exit.UsageError(c.CommandPath()+" --help shows an example", "%s takes %s, not %s", c.Name(), strings.Join(names, " "), count)
	}
}

// Between is how many arguments a command takes that can do without the last ones.
func Between(least, most int, names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) >= least && len(args) <= most {
			return nil
		}
		return Exactly(names[:least]...)(c, args)
	}
}

// NoArguments fails if a command that takes no arguments has one.
func NoArguments(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return exit.UsageError(c.CommandPath()+" --help shows an example", "%s takes no arguments, not %q", c.Name(), args[0])
}
