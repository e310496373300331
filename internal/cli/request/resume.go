package request

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/troupe-run/troupe/internal/cli/console"
)

// resumeFlags are the flags of a request that count for a run that is resumed: its limit of time, its directory for the
// node, and those that name files whose present content the user approves by that.
var resumeFlags = []string{"timeout", "dir", "agents", "mcp-config", "model", "fallback", "run-id"}

// noteIgnored names the flags that are without effect for a run that is resumed: its first entry has what they say.
func noteIgnored(a *console.Console, c *cobra.Command) {
	known := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(Flags).AddFlags(known)
	var ignored []string
	c.Flags().Visit(func(f *pflag.Flag) {
		if known.Lookup(f.Name) != nil && !slices.Contains(resumeFlags, f.Name) {
			ignored = append(ignored, "--"+f.Name)
		}
	})
	if len(ignored) > 0 && !a.Quiet {
		a.Say("note: " + strings.Join(ignored, ", ") + ": no effect on a run that is resumed; troupe budget and troupe policy change one")
	}
}
