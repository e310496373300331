// Package reference writes the commands of a program as a page of Markdown and as man pages, from the definitions of
// the commands.
package reference

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// useLine returns the usage line of a command. The flags of its parents are part of it once they have been merged.
func useLine(c *cobra.Command) string {
	c.InheritedFlags()
	return c.UseLine()
}

// Markdown returns a page about all commands below a root, with the flags that all of them have once.
func Markdown(root *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Command reference\n\n<!-- generated: go test ./internal/cli -run TestCommandReference -update -->\n\n%s\n\n", root.Short+".")
	b.WriteString("## Flags of every command\n\n")
	writeFlagTable(&b, root.PersistentFlags(), true)
	for _, c := range listCommands(root) {
		fmt.Fprintf(&b, "## %s\n\n%s.\n\n", c.CommandPath(), strings.TrimSuffix(c.Short, "."))
		if !c.Runnable() {
			fmt.Fprintf(&b, "```\n%s\n```\n\n", strings.TrimSpace(c.Long))
			continue
		}
		fmt.Fprintf(&b, "```\n%s\n```\n\n", useLine(c))
		if c.Long != "" {
			fmt.Fprintf(&b, "%s\n\n", strings.TrimSpace(c.Long))
		}
		if c.Example != "" {
			fmt.Fprintf(&b, "```\n%s\n```\n\n", strings.TrimRight(c.Example, "\n"))
		}
		writeFlagTable(&b, c.NonInheritedFlags(), false)
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// listCommands returns the commands below a root that people see, in the order of the help.
func listCommands(root *cobra.Command) (list []*cobra.Command) {
	for _, c := range root.Commands() {
		if c.Name() == "help" || c.Hidden {
			continue
		}
		list = append(append(list, c), listCommands(c)...)
	}
	return list
}

func writeFlagTable(b *strings.Builder, flags *pflag.FlagSet, withHidden bool) {
	rows := 0
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" || f.Hidden && !withHidden {
			return
		}
		if rows++; rows == 1 {
			b.WriteString("| flag | meaning |\n|---|---|\n")
		}
		fmt.Fprintf(b, "| `%s` | %s |\n", flagForm(f), strings.ReplaceAll(flagMeaning(f), "|", "\\|"))
	})
	if rows > 0 {
		b.WriteString("\n")
	}
}

// flagForm is how a flag is written.
func flagForm(f *pflag.Flag) string {
	form := "--" + f.Name
	if f.Shorthand != "" {
		form = "-" + f.Shorthand + ", " + form
	}
	if kind, _ := pflag.UnquoteUsage(f); kind != "" {
		form += " " + kind
	}
	return form
}

func flagMeaning(f *pflag.Flag) string {
	_, usage := pflag.UnquoteUsage(f)
	switch f.DefValue {
	case "", "0", "false", "[]", "0s":
		return usage
	}
	if strings.Contains(usage, "default") {
		return usage
	}
	return fmt.Sprintf("%s (default %s)", usage, f.DefValue)
}

// ManPages returns the man pages of a root and of its commands, by file name.
func ManPages(root *cobra.Command) map[string]string {
	pages := map[string]string{manName(root) + ".1": manPage(root, listCommands(root))}
	for _, c := range listCommands(root) {
		pages[manName(c)+".1"] = manPage(c, nil)
	}
	return pages
}

func manName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// manPage writes one page. below are the commands that it lists.
func manPage(c *cobra.Command, below []*cobra.Command) string {
	var b strings.Builder
	name := manName(c)
	fmt.Fprintf(&b, ".TH %s 1\n.SH NAME\n%s \\- %s\n.SH SYNOPSIS\n.B %s\n", quoteRoff(strings.ToUpper(name)), escapeRoff(name), escapeRoff(c.Short), escapeRoff(useLine(c)))
	if c.Long != "" {
		fmt.Fprintf(&b, ".SH DESCRIPTION\n.nf\n%s\n.fi\n", escapeRoff(strings.TrimSpace(c.Long)))
	}
	writeManFlags(&b, "OPTIONS", c.NonInheritedFlags())
	writeManFlags(&b, "OPTIONS OF EVERY COMMAND", c.InheritedFlags())
	if c.Example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", escapeRoff(strings.TrimRight(c.Example, "\n")))
	}
	for i, sub := range below {
		if i == 0 {
			b.WriteString(".SH COMMANDS\n")
		}
		fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", escapeRoff(sub.CommandPath()), escapeRoff(sub.Short))
	}
	return b.String()
}

func writeManFlags(b *strings.Builder, title string, flags *pflag.FlagSet) {
	rows := 0
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" {
			return
		}
		if rows++; rows == 1 {
			fmt.Fprintf(b, ".SH %s\n", title)
		}
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", escapeRoff(flagForm(f)), escapeRoff(flagMeaning(f)))
	})
}

// escapeRoff keeps troff from reading text as requests.
func escapeRoff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

func quoteRoff(text string) string { return `"` + escapeRoff(text) + `"` }
