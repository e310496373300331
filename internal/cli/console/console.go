package console

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/redact"
	"github.com/troupe-run/troupe/internal/term"
)

// Console is the terminal, and the global flags about output.
type Console struct {
	In, Out, Err *os.File
	Getenv       func(string) string

	Output string
	Color  string
	JSON   bool
	// outputAsked: Output is not the default of the command.
	outputAsked bool
	Quiet       bool
	Verbose     bool

	// Secrets knows the secrets of this process; nil: none.
	Secrets  func() *redact.Masker
	Style    term.Style // of stdout
	ErrStyle term.Style // of stderr
}

// Logger writes to stderr with -v, and nowhere without it.
func (c *Console) Logger() *slog.Logger {
	if !c.Verbose {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(c.Err, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// Report writes a failure to stderr: two lines, or one JSON document if JSON
// was asked for.
func (c *Console) Report(f *exit.Failure) {
	if f.Err == nil {
		return
	}
	text := exit.PlainText(f.Err)
	if c.JSON || c.outputAsked && strings.Contains(c.Output, "json") {
		doc := struct {
			Type  string `json:"type"`
			Error string `json:"error"`
			Hint  string `json:"hint,omitempty"`
			Exit  int    `json:"exit_code"`
		}{"error", text, f.Hint, f.Code}
		if raw, err := json.Marshal(doc); err == nil {
			c.Say(string(term.CleanJSON(raw)))
			return
		}
	}
	c.Say(c.ErrStyle.Red("error:") + " " + term.CleanLine(text))
	if f.Hint != "" {
		c.Say(c.ErrStyle.Yellow("hint:") + " " + term.CleanLine(f.Hint))
	}
}

// Say writes a line to stderr. It ignores a failure, because there is nowhere left to report it.
func (c *Console) Say(line string) { _, _ = io.WriteString(c.Err, c.redact(line)+"\n") }

// redact redacts the secrets of this process in a line: an error may quote
// an address, or text that was typed in the wrong place.
func (c *Console) redact(line string) string {
	if c.Secrets == nil {
		return line
	}
	return c.Secrets().MaskValues(line)
}

// Confirm asks the user on a terminal whether to do something, unless yes is set. The question ends
// with end, and the hint of the error after a no is refused.
func (c *Console) Confirm(yes bool, what, end, refused string) error {
	if yes {
		return nil
	}
	if !term.IsTTY(c.In) {
		return exit.UsageError("pass --yes to confirm", "to %s it must be confirmed", what)
	}
	_, _ = fmt.Fprint(c.Err, c.ErrStyle.Yellow("? ")+what+end+" y/N: ") // an answer on the same line
	answer, err := bufio.NewReader(c.In).ReadString('\n')
	if word := strings.ToLower(strings.TrimSpace(answer)); err != nil && word == "" || word != "y" && word != "yes" {
		return exit.UsageError(refused, "not confirmed")
	}
	return nil
}

// Outputs are the formats that some command can write.
var Outputs = []string{"table", "json", "jsonl", "yaml", "text", "stream-json"}

// ChooseOutput decides on one of the formats that a command can write.
func (c *Console) ChooseOutput(can []string) error {
	if c.JSON {
		if c.Output != "" && c.Output != "json" {
			return exit.UsageError("leave one of them out", "--json and -o %s contradict each other", c.Output)
		}
		c.Output = "json"
	}
	c.outputAsked = c.Output != ""
	if c.Output == "jsonl" && slices.Contains(can, "stream-json") {
		c.Output = "stream-json"
	}
	if c.Output == "" {
		c.Output = can[0]
	}
	if !slices.Contains(can, c.Output) {
		bad := c.Output
		c.Output = ""
		return exit.UsageError("use one of "+strings.Join(can, ", "), "this command cannot write %q", bad)
	}
	return nil
}
