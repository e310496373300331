package agentfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/loopoptions"
	"github.com/troupe-run/troupe/internal/toolset/command"
)

// CompleteDefinition checks a definition that was made in Go, and completes it as Load completes a
// parsed one. Its schema is JSON text, not a path.
func CompleteDefinition(d Definition) (Definition, error) {
	fail := func(format string, args ...any) (Definition, error) {
		return d, fmt.Errorf("agentfile: agent %.80q: %w: %s", d.Name, ErrField, fmt.Sprintf(format, args...))
	}
	if !spec.IsAgentName(d.Name) {
		return fail("a name is up to 64 lower-case letters, digits, _ and -, such as %q", sanitizeName(d.Name))
	}
	if strings.TrimSpace(d.Description) == "" {
		return fail("description is missing; say in a sentence when to call this agent")
	}
	if d.OutputSchema != "" {
		if !strings.HasPrefix(d.OutputSchema, "{") {
			return fail("the schema of the answer is not a JSON object")
		}
		d.LoopOptions.Require.Schema = d.OutputSchema
	}
	if err := loopoptions.Check(d.LoopOptions); err != nil {
		return fail("%v", err)
	}
	for _, c := range d.Commands {
		if _, err := command.New(c); err != nil {
			return fail("%v", err)
		}
	}
	return d, nil
}

// IsBuiltin reports whether troupe has a tool of that name.
func IsBuiltin(name string) bool { return slices.Contains(builtinTools, name) }
