package agentfile

import (
	"slices"
	"strings"
	"testing"
)

// A child has at most the tools of its parent: those that its file lists and the parent lacks are cut off. What only the
// parent has is no matter of the child's.
func TestToolsCutOff(t *testing.T) {
	t.Parallel()
	parse := func(keys string) Definition {
		d, _, err := Parse("one.md", []byte("---\nname: one\ndescription: Works.\n"+keys+"\n---\nWork.\n"))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for name, c := range map[string]struct {
		parent, child string
		want          []string
	}{
		"the child has more":          {"tools: Read, Agent(one)", "tools: Read, Write, Bash", []string{"write_file", "shell"}},
		"the parent has more":         {"tools: Read, Write, Bash", "tools: Read", nil},
		"the child has all":           {"tools: Read", "", nil},
		"the parent has all":          {"", "tools: Read, Write", nil},
		"denied to the parent":        {"disallowedTools: Bash", "tools: Read, Bash", []string{"shell"}},
		"a part denied to the parent": {"disallowedTools: Bash(rm:*)", "tools: Read, Bash", nil},
		"a part of it":                {"tools: Read, Bash(git log:*)", "tools: Bash", nil},
		"a server":                    {"tools: mcp__github", "tools: mcp__github__search, mcp__jira__search", []string{"mcp__jira__search"}},
		"a wildcard":                  {"tools: 'git_*'", "tools: git_log, Read", []string{"read_file"}},
		"a command of its own":        {"tools: Read", "tools: Read, lint\nx-troupe: {tools: [{name: lint, description: Lints., command: make lint}]}", []string{"lint"}},
		"of another program":          {"tools: Read", "tools: Read, WebSearch", nil},
	} {
		if got := ToolsCutOff(parse(c.parent), parse(c.child)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %s, want %s", name, strings.Join(got, ", "), strings.Join(c.want, ", "))
		}
	}
}
