package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/internal/term"
)

// print writes text to stdout: as it is to a pipe, made harmless to a terminal.
func (a *console) print(text string) error {
	if term.IsTTY(a.out) {
		text = term.Clean(text)
	}
	return a.put([]byte(strings.TrimRight(text, "\n") + "\n"))
}

// put writes bytes that are fit for where they go.
func (a *console) put(data []byte) error {
	if _, err := a.out.Write(data); err != nil {
		return fmt.Errorf("write to stdout: %w", err)
	}
	return nil
}

// line writes a JSON document as one line. If stdout is closed, that
// shows when the result is written.
func (a *console) line(raw []byte) {
	if term.IsTTY(a.out) {
		raw = term.CleanJSON(raw)
	}
	_ = a.put(append(bytes.TrimSpace(raw), '\n'))
}

// printData writes a document in the output that was chosen.
func (a *console) printData(v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("output: %w", err)
	}
	return a.printJSON(raw)
}

// printJSON writes a JSON document: a list one per line with jsonl.
func (a *console) printJSON(raw []byte) error {
	var b bytes.Buffer
	switch a.output {
	case "yaml":
		out, err := toYAML(raw)
		if err != nil {
			return err
		}
		return a.print(string(out))
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
	if term.IsTTY(a.out) {
		return a.put(term.CleanJSON(b.Bytes()))
	}
	return a.put(b.Bytes())
}

// toYAML keeps the names and the order of a JSON document.
func toYAML(raw []byte) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("output: %w", err)
	}
	block(&doc)
	out, err := yaml.Marshal(&doc)
	if err != nil {
		return nil, fmt.Errorf("output: %w", err)
	}
	return out, nil
}

func block(n *yaml.Node) {
	n.Style = 0
	for _, c := range n.Content {
		block(c)
	}
}

// printResult writes the one result of a run.
func (a *console) printResult(r event.Result) error {
	switch a.output {
	case "json", "stream-json", "jsonl":
		raw, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("output: %w", err)
		}
		if term.IsTTY(a.out) {
			raw = term.CleanJSON(raw)
		}
		return a.put(append(raw, '\n'))
	case "yaml":
		return a.printData(r)
	}
	if r.IsError && !a.quiet {
		text := "stopped: " + string(r.Reason)
		if r.Detail != "" {
			text += ": " + term.Line(r.Detail)
		}
		a.say(a.errors.Yellow(text))
	}
	if r.Text == "" {
		return nil
	}
	return a.print(r.Text)
}

// table writes rows under headings, in columns as wide as they need. A terminal
// breaks no line of it; a pipe gets all of it.
func (a *console) table(head []string, rows [][]string) error {
	return a.tableOf(left(head...), rows)
}

func (a *console) tableOf(head []column, rows [][]string) error {
	width := 1 << 20
	if term.IsTTY(a.out) {
		width, _ = term.Size(a.out)
	}
	return a.lines(tableLines(a.style, head, rows, width))
}

// age is how long ago a stamp was.
func age(stamp string) string {
	at, err := time.Parse(time.RFC3339, stamp)
	if err != nil {
		return "-"
	}
	return term.Age(time.Since(at))
}

// confirm asks the user on a terminal whether to do something, unless yes says so. end follows
// what is to be done in the question; refused is the hint of the error if the answer is no.
func (a *console) confirm(yes bool, what, end, refused string) error {
	if yes {
		return nil
	}
	if !term.IsTTY(a.in) {
		return usage("--yes says that it is meant", "to %s it must be confirmed", what)
	}
	_, _ = fmt.Fprint(a.err, a.errors.Yellow("? ")+what+end+" y/N: ") // an answer on the same line
	answer, err := bufio.NewReader(a.in).ReadString('\n')
	if word := strings.ToLower(strings.TrimSpace(answer)); err != nil && word == "" || word != "y" && word != "yes" {
		return usage(refused, "not confirmed")
	}
	return nil
}
