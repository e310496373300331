package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/term"
)

// fmtLineMax is the longest line that is parsed as one event; a longer line is copied.
const fmtLineMax = 1 << 20

func (a *runsCommands) fmtCommand() *cobra.Command {
	return &cobra.Command{
		Use: "fmt", Args: none,
		Short: "Read events as JSON on stdin, write each as one line",
		Long: `Read events as JSON, one per line, and write each as one readable line. What is
not an event is written as it is.

It is coloured unless NO_COLOR or --color never says otherwise: nats sub
--translate runs it behind a pipe, for a terminal.`,
		Example: `  nats --context troupe sub 'troupe.evt.>' --translate 'troupe fmt'
  troupe events 01k9z3 -o jsonl | troupe fmt`,
		RunE: func(c *cobra.Command, _ []string) error {
			style := a.console.style
			if a.console.color == "auto" {
				style.On = a.console.getenv("NO_COLOR") == "" && a.console.getenv("TERM") != "dumb" && !regular(a.console.out)
			}
			return format(a.console.in, a.console.out, style)
		},
	}
}

// regular reports whether output goes into a regular file, which gets no colours.
func regular(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular()
}

// format writes each line as it arrives: it may be at the end of a stream.
func format(in io.Reader, out io.Writer, style term.Style) error {
	lines := bufio.NewReaderSize(in, fmtLineMax)
	for {
		line, err := lines.ReadSlice('\n')
		if len(line) > 0 {
			if _, err := out.Write(formatLine(style, line)); err != nil {
				return fmt.Errorf("write to stdout: %w", err)
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("read stdin: %w", err)
		}
	}
}

func formatLine(style term.Style, line []byte) []byte {
	var e client.Event
	if json.Unmarshal(line, &e) != nil || e.Kind == "" || e.Run == "" {
		if style.On {
			return []byte(term.Clean(string(line)))
		}
		return line
	}
	text := term.EventLine(style, e)
	if bytes.HasSuffix(line, []byte("\n")) {
		text += "\n"
	}
	return []byte(text)
}

func (a *doctorCommands) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Args: none,
		Short:       "Print the version",
		Example:     "  troupe version\n  troupe version -o json",
		Annotations: map[string]string{formats: dataFormats},
		RunE: func(*cobra.Command, []string) error {
			v := version()
			if a.console.output != "table" {
				return a.console.printData(v)
			}
			text := "troupe " + v["version"]
			if v["commit"] != "" {
				text += " (" + v["commit"] + ", " + v["date"] + ")"
			}
			return a.console.print(text + " " + v["go"])
		},
	}
}

// version returns the version information of the build.
func version() map[string]string {
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
