package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/term"
)

// Print writes text to stdout: as it is to a pipe, made harmless to a terminal.
func (c *Console) Print(text string) error {
	if term.IsTTY(c.Out) {
		text = term.CleanText(text)
	}
	return c.Write([]byte(strings.TrimRight(text, "\n") + "\n"))
}

// Write writes bytes that are fit for where they go.
func (c *Console) Write(data []byte) error {
	if _, err := c.Out.Write(data); err != nil {
		return fmt.Errorf("write to stdout: %w", err)
	}
	return nil
}

// WriteText writes a text that has to stay as it is in a pipe or a file, and makes it harmless to a terminal.
func (c *Console) WriteText(data []byte) error {
	if term.IsTTY(c.Out) {
		data = []byte(term.CleanText(string(data)))
	}
	return c.Write(data)
}

// PrintJSONLine writes a JSON document as one line. If stdout is closed, that
// shows when the result is written.
func (c *Console) PrintJSONLine(raw []byte) {
	if term.IsTTY(c.Out) {
		raw = term.CleanJSON(raw)
	}
	_ = c.Write(append(bytes.TrimSpace(raw), '\n'))
}

// PrintData writes a document in the output that was chosen.
func (c *Console) PrintData(v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("output: %w", err)
	}
	return c.PrintJSON(raw)
}

// PrintJSON writes a JSON document: a list one per line with jsonl.
func (c *Console) PrintJSON(raw []byte) error {
	var b bytes.Buffer
	switch c.Output {
	case "yaml":
		out, err := encodeYAML(raw)
		if err != nil {
			return err
		}
		return c.Print(string(out))
	case "jsonl", "stream-json":
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil {
			list = []json.RawMessage{raw}
		}
		for _, doc := range list {
			b.Write(doc)
			b.WriteByte('\n')
		}
	default:
		if err := json.Indent(&b, raw, "", "  "); err != nil {
			return fmt.Errorf("output: %w", err)
		}
		b.WriteByte('\n')
	}
	if term.IsTTY(c.Out) {
		return c.Write(term.CleanJSON(b.Bytes()))
	}
	return c.Write(b.Bytes())
}

// encodeYAML keeps the names and the order of a JSON document.
func encodeYAML(raw []byte) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("output: %w", err)
	}
	useBlockStyle(&doc)
	out, err := yaml.Marshal(&doc)
	if err != nil {
		return nil, fmt.Errorf("output: %w", err)
	}
	return out, nil
}

func useBlockStyle(n *yaml.Node) {
	n.Style = 0
	for _, c := range n.Content {
		useBlockStyle(c)
	}
}

// Commands completes the command lines that a result suggests.
type Commands interface {
	// Command returns a whole command line of these words.
	Command(words string) string
	// ForkCommand returns the one that begins a run with the history of a run; "": none can.
	ForkCommand(run string) string
}

// PrintResult writes the one result of a run. commands completes the command lines that it suggests.
func (c *Console) PrintResult(r event.Result, commands Commands) error {
	switch c.Output {
	case "json", "stream-json", "jsonl":
		raw, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("output: %w", err)
		}
		if term.IsTTY(c.Out) {
			raw = term.CleanJSON(raw)
		}
		return c.Write(append(raw, '\n'))
	case "yaml":
		return c.PrintData(r)
	}
	if r.IsError {
		c.Say(c.ErrStyle.Yellow(stopLine(r, commands)))
	}
	if r.Text == "" || r.IsError && r.Text == spec.NothingFound { // no result, as the line above says
		return nil
	}
	if !term.CanDraw(c.Out, c.Getenv) {
		return c.Print(r.Text)
	}
	width, _ := term.Size(c.Out)
	return c.PrintLines(c.Style.Markdown(term.CleanText(r.Text), width-1))
}

// isParked reports whether a run waits for a person, and has not ended.
func isParked(r event.Result) bool {
	return slices.ContainsFunc(r.Agents, func(a event.AgentResult) bool { return a.Phase == "parked" })
}

// PrintTable writes rows under headings, in columns as wide as they need. A terminal
// breaks no line of it; a pipe gets all of it.
func (c *Console) PrintTable(head []string, rows [][]string) error {
	return c.PrintColumns(Left(head...), rows)
}

// PrintColumns writes rows under columns; a column is aligned to the left or to the right.
func (c *Console) PrintColumns(head []Column, rows [][]string) error {
	return c.PrintLines(drawTable(c.Style, head, rows, c.outWidth()))
}
