package doctor

import (
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/internal/cli/command"
)

// Version makes the command version.
func (cs *Commands) Version() *cobra.Command {
	return &cobra.Command{
		Use: "version", Args: command.NoArguments,
		Short:       "Print the version",
		Example:     "  troupe version\n  troupe version -o json",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(*cobra.Command, []string) error {
			if cs.Console.Output != "table" {
				return cs.Console.PrintData(buildVersion())
			}
			return cs.Console.Print(VersionText())
		},
	}
}

// VersionText is the version of the build in one line.
func VersionText() string {
	v := buildVersion()
	text := "troupe " + v["version"]
	if v["commit"] != "" {
		text += " (" + v["commit"] + ", " + v["date"] + ")"
	}
	return text + " " + v["go"]
}

// buildVersion returns the version information of the build.
func buildVersion() map[string]string {
	v := map[string]string{"version": "devel", "commit": "", "date": "", "go": ""}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v["go"] = info.GoVersion
	if info.Main.Version != "" {
		v["version"] = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v["commit"] = s.Value
		case "vcs.time":
			v["date"] = s.Value
		}
	}
	return v
}
