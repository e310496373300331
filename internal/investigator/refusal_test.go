package investigator_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/investigator"
	"github.com/troupe-run/troupe/model"
)

// Work that an investigation does not do is not done by a report about it, though the prompt names a report or a
// document.
func TestWorkOtherThanAReportIsNotReportedAsDone(t *testing.T) {
	for prompt, done := range map[string]bool{
		"Fix the bug in report.go":                  false,
		"Fix the typo in README.md":                 false,
		"Please refactor main.go and write tests":   false,
		"Update README.md":                          false,
		"Write unit tests for main.go":              false,
		"Write a function that saves orders":        false,
		"Write a poem about the sea":                false,
		"What is the capital of France?":            false,
		"Translate hello into French":               false,
		"Hello":                                     false,
		"Untersuche den Ordner":                     true,
		"What does this code do?":                   true,
		"Which errors are most frequent?":           true,
		"Write down what you find":                  true,
		"Create a report about this directory":      true,
		"Please generate notes.md with the results": true,
		"Run an audit and write report.md":          true,
		"Write what you see to report.md":           true,
	} {
		dir := t.TempDir()
		writeFile(t, dir, "main.go", "package main\n")
		text := newDriver(t, directoryTools(t, dir)).runAgent("coordinator", prompt)
		if refused := strings.Contains(text, "What you asked for was not done"); refused == done {
			t.Errorf("%q: %s", prompt, text)
		}
		reports, err := filepath.Glob(filepath.Join(dir, "report.*"))
		if err != nil || !done && len(reports) > 0 {
			t.Errorf("%q: %v, %v", prompt, reports, err)
		}
		if data, err := os.ReadFile(filepath.Join(dir, "main.go")); err != nil || string(data) != "package main\n" {
			t.Errorf("%q: %q, %v", prompt, data, err)
		}
	}
}

// Without tools that look around nothing is done either.
func TestWorkIsRefusedWithoutTools(t *testing.T) {
	for _, tools := range [][]string{nil, {"delegate"}} {
		reply, err := investigator.New().Complete(context.Background(), model.Request{System: agentNamed("coordinator").System, Caller: model.Caller{Name: "coordinator"},
			MaxOutput: 4096, Messages: []model.Message{{Role: model.User, Text: "Fix the failing test"}}, Tools: toolSpecs(tools)}, nil)
		if err != nil || reply.Stop != model.StopRefusal {
			t.Errorf("with the tools %v it ends with %q: %s, %v", tools, reply.Stop, reply.Message.Text, err)
		}
	}
}
