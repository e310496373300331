package cli

import (
	"bytes"
	"cmp"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/troupe-run/troupe/internal/term"
)

type flagGroup struct {
	title string
	names []string
}

// flagGroups are the titles under which the help of commands with many flags lists them. The first has those
// that most runs need.
var flagGroups = []flagGroup{
	{"Task", []string{"agent", "attach", "dir", "model", "yes", "max-budget-usd", "timeout", "dry-run", "detach", "resume"}},
	{"Agents and tools", []string{"agents", "mcp-config", "no-agents-md", "effort", "fallback", "temperature", "priority"}},
	{"Permissions", []string{"permission-mode", "allowed-tools", "disallowed-tools", "ask-tools", "approvals", "taint", "taint-files", "outside", "guardrails", "policy", "unattended", "question-timeout", "park-timeout"}},
	{"What the answer must be", []string{"json-schema", "require-tool", "criteria", "constraints", "fail-if", "use-tokens"}},
	{"History", []string{"conversation", "owner", "history", "fork", "instead", "layer", "run-id", "record", "replay"}},
	{"Schedule", []string{"at", "every", "zone", "missed", "overlap", "on"}},
	{"Limits of the run", []string{"max-tokens", "max-tool-calls", "max-agents", "max-depth", "max-messages", "max-backlog", "backlog-lease", "allow-unpriced", "allow-unbounded"}},
	{"Limits of an agent", []string{"max-turns", "max-agent-tokens", "max-agent-budget-usd", "max-agent-tool-calls", "max-children", "max-output-tokens", "closing-tokens", "max-reply-calls", "max-parallel-tools",
		"max-cuts", "max-malformed", "max-retries", "max-vetoes", "max-handoffs", "tool-retries", "patience"}},
	{"The node in this process", []string{"http", "log-patience", "log-store", "max-live-runs", "otlp-endpoint", "telemetry-content"}},
}

// Width of the help: that of the terminal within limits, and a fixed one elsewhere.
const (
	helpWidth    = 100
	helpWidthMin = 60
	helpWidthMax = 120
)

// widthOfHelp returns the width of the help on a terminal.
func widthOfHelp(terminal *os.File) int {
	if !term.IsTTY(terminal) {
		return helpWidth
	}
	columns, _ := term.Size(terminal)
	return min(max(columns, helpWidthMin), helpWidthMax)
}

// fillParagraphs fills the paragraphs of a text that has a line wider than width anew. Lines
// that begin with a space stay.
func fillParagraphs(text string, width int) string {
	lines := strings.Split(text, "\n")
	if !slices.ContainsFunc(lines, func(l string) bool { return term.Width(l) > width }) {
		return text
	}
	var filled, paragraph []string
	flush := func() {
		if len(paragraph) > 0 {
			filled, paragraph = append(filled, term.Wrap(strings.Join(paragraph, " "), width)...), nil
		}
	}
	for _, l := range lines {
		if l == "" || strings.HasPrefix(l, " ") {
			flush()
			filled = append(filled, l)
			continue
		}
		paragraph = append(paragraph, l)
	}
	flush()
	return strings.Join(filled, "\n")
}

// fillHelp makes the texts of the help fit the width of a terminal.
func fillHelp(root *cobra.Command, terminal *os.File) {
	root.SetHelpFunc(func(c *cobra.Command, _ []string) {
		text := fillParagraphs(strings.TrimSpace(cmp.Or(c.Long, c.Short)), widthOfHelp(terminal)) + "\n\n"
		if c.Runnable() || c.HasSubCommands() {
			text += c.UsageString()
		}
		_, _ = c.OutOrStdout().Write([]byte(text)) // as cobra does: the help has no error to return
	})
}

// groupFlags makes the help of a command and of those below it wrap flags to the width of a terminal, and
// list many flags in groups.
func groupFlags(root *cobra.Command, terminal *os.File) {
	standard := root.UsageFunc()
	root.SetUsageFunc(func(c *cobra.Command) error {
		out := c.OutOrStderr()
		var b bytes.Buffer
		c.SetOut(&b)
		err := standard(c)
		c.SetOut(out)
		if err != nil {
			return err
		}
		width := widthOfHelp(terminal)
		text := b.String()
		for _, part := range []struct {
			title string
			flags *pflag.FlagSet
		}{{"Flags", c.LocalFlags()}, {"Global Flags", c.InheritedFlags()}} {
			listed := part.title + ":\n" + strings.TrimRight(part.flags.FlagUsages(), " \n")
			text = strings.Replace(text, listed, strings.TrimRight(describeFlags(part.title, part.flags, width), " \n"), 1)
		}
		_, err = out.Write([]byte(text))
		return err
	})
}

// describeFlags lists flags under a title, or under those of their groups.
func describeFlags(title string, flags *pflag.FlagSet, width int) string {
	var b strings.Builder
	rest := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.VisitAll(rest.AddFlag)
	if flags.Lookup(flagGroups[0].names[0]) != nil { // a command that begins runs
		for _, group := range flagGroups {
			some := pflag.NewFlagSet("", pflag.ContinueOnError)
			some.SortFlags = false
			for _, name := range group.names {
				if f := flags.Lookup(name); f != nil {
					some.AddFlag(f)
				}
			}
			writeFlags(&b, group.title, some, width)
		}
		title = "Other flags"
		rest = pflag.NewFlagSet("", pflag.ContinueOnError)
		flags.VisitAll(func(f *pflag.Flag) {
			if !slices.ContainsFunc(flagGroups, func(g flagGroup) bool { return slices.Contains(g.names, f.Name) }) {
				rest.AddFlag(f)
			}
		})
	}
	writeFlags(&b, title, rest, width)
	return b.String()
}

func writeFlags(b *strings.Builder, title string, flags *pflag.FlagSet, width int) {
	if flags.HasAvailableFlags() {
		b.WriteString(title + ":\n" + flags.FlagUsagesWrapped(width) + "\n")
	}
}
