package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/reference"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/term"
)

// helpColumns is how wide texts and examples of the help are at most.
const helpColumns = 80

// connectionFlags are the flags of the nats CLI that a topic of the help lists, instead of the help of every
// command.
var connectionFlags = []string{"creds", "nkey", "user", "password", "token", "tlscert", "tlskey", "tlsca"}

// hideConnectionFlags leaves them out of the help of commands.
func hideConnectionFlags(f *pflag.FlagSet) {
	for _, name := range connectionFlags {
		f.Lookup(name).Hidden = true
	}
}

// connectionTopic is `troupe help connection`.
func connectionTopic(flags *pflag.FlagSet) *cobra.Command {
	var b strings.Builder
	b.WriteString("Which node a command talks to: the NATS server of -s or --context, else the\n" +
		"owner of the state directory (--store-dir), else a node in this process. These\n" +
		"flags have the names and the environment variables of the nats CLI; every\n" +
		"command takes them.\n\n")
	for _, name := range append([]string{"server", "context"}, connectionFlags...) {
		f := flags.Lookup(name)
		_, usage := pflag.UnquoteUsage(f)
		fmt.Fprintf(&b, "  --%-10s %s\n", f.Name, usage)
	}
	return &cobra.Command{Use: "connection", Short: "Flags about the NATS server, and how a command finds a node", Long: strings.TrimRight(b.String(), "\n")}
}

// environmentTopic is `troupe help environment`.
func environmentTopic() *cobra.Command {
	var b strings.Builder
	b.WriteString("A flag takes precedence over a variable, a variable over troupe.yaml.\ndocs/cli.md also lists the variables of the providers and of the nats CLI.\n\n")
	const nameColumns = 27
	for _, v := range config.Variables() {
		for i, line := range term.Wrap(v.Meaning, helpColumns-nameColumns-3) {
			name := v.Name
			if i > 0 {
				name = ""
			}
			fmt.Fprintf(&b, "  %-*s %s\n", nameColumns, name, line)
		}
	}
	return &cobra.Command{Use: "environment", Short: "Environment variables that troupe reads and sets", Long: strings.TrimRight(b.String(), "\n")}
}

// manCommand writes the man pages.
func (a *app) manCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man DIR", Args: command.Exactly("DIR"),
		Short:       "Write the man pages of all commands into a directory",
		Example:     "  troupe man ~/.local/share/man/man1 && man troupe-run",
		Annotations: map[string]string{command.Formats: "text", command.WithoutSettings: "yes"},
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil { //nolint:gosec // man pages are for everyone
				return fmt.Errorf("man: %w", err)
			}
			pages := reference.ManPages(c.Root())
			for name, text := range pages {
				if err := os.WriteFile(filepath.Join(args[0], name), []byte(text), 0o644); err != nil { //nolint:gosec // see above
					return fmt.Errorf("man: %w", err)
				}
			}
			return a.console.Print(fmt.Sprintf("%d man pages in %s", len(pages), args[0]))
		},
	}
}
