package builtin

import (
	"context"
	"strings"

	"github.com/troupe-run/troupe/internal/redact"
)

// GrepText searches one text as grep searches a file.
func GrepText(name, pattern, text string) []string {
	compiled, err := compileLinePattern(pattern)
	if err != nil {
		panic(err)
	}
	s := &grepSearch{linesMax: grepMatchesMax, mask: redact.New(redact.Config{}), pattern: compiled}
	var lines []string
	from := newLineReader()
	from.reset(strings.NewReader(text))
	if text, ok := from.wholeFile(); ok && compiled.rulesOut(text) {
		return lines
	}
	found, err := s.matchLines(context.Background(), name, from)
	if err != nil {
		panic(err) // a text has no errors
	}
	for _, line := range found.lines {
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
	return lines
}

// WhenFound, WhenChecked and BeforeGit call f at a step of each call that reads a repository, until the result is
// called: when its git directory was found, when all was checked, and before git starts.
func WhenFound(f func()) func()   { return hookStep(&steps.found, f) }
func WhenChecked(f func()) func() { return hookStep(&steps.checked, f) }
func BeforeGit(f func()) func()   { return hookStep(&steps.start, f) }

func hookStep(step *func(), f func()) func() {
	*step = f
	return func() { *step = func() {} }
}

// WithoutSandbox starts git without the sandbox until the result is called.
func WithoutSandbox() func() {
	unconfined.Store(true)
	return func() { unconfined.Store(false) }
}
