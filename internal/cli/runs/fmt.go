package runs

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/term"
)

// fmtLineMax is the longest line that is parsed as one event; a longer line is copied.
const fmtLineMax = 1 << 20

// Format makes the command fmt.
func (cs *Commands) Format() *cobra.Command {
	return &cobra.Command{
		Use: "fmt", Args: command.NoArguments,
		Short: "Read events as JSON from stdin and print one line for each",
		Long: `Read events as JSON, one per line, and print each as one readable line. Other input
is printed unchanged.

Output is coloured unless NO_COLOR or --color never is set, even in a pipe, because
nats sub --translate runs it in one.`,
		Example: `  nats --context troupe sub 'troupe.evt.>' --translate 'troupe fmt'
  troupe events 01k9z3 -o jsonl | troupe fmt`,
		RunE: func(c *cobra.Command, _ []string) error {
			style := cs.Console.Style
			if cs.Console.Color == "auto" {
				style.On = cs.Console.Getenv("NO_COLOR") == "" && cs.Console.Getenv("TERM") != "dumb" && !isRegularFile(cs.Console.Out)
			}
			return formatEvents(cs.Console.In, cs.Console.Out, style)
		},
	}
}

// isRegularFile reports whether output goes into a regular file, which gets no colours.
func isRegularFile(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular()
}

// formatEvents writes each line as it arrives: it may be at the end of a stream.
func formatEvents(in io.Reader, out io.Writer, style term.Style) error {
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
			return []byte(term.CleanText(string(line)))
		}
		return line
	}
	text := term.EventLine(style, e, false)
	if bytes.HasSuffix(line, []byte("\n")) {
		text += "\n"
	}
	return []byte(text)
}
