package agentfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
)

const full = `---
name: auditor
description: Finds risky code. Use after the map of the repository is known.
tools: Read, Grep, Glob, Bash(git log:*, git show:*), Agent(historian), mcp__github__search
disallowedTools: [Write]
model: inherit
permissionMode: bypass
maxTurns: 12
skills: [review]
mcpServers:
  - github
  - local: {command: npx, args: [server]}
color: blue
x-troupe:
  budget: {tokens: 12000, usd: 0.5, share: 0.2}
  delegates: [historian]
  timeout: 3m
  fallback: [openai/gpt-x]
  temperature: 0.2
  placement: {pool: heavy}
  output_schema: finding.schema.json
  export: true
  policy: {stop: never}
  tools:
    - name: lint
      description: Runs the linter.
      command: make lint
      effect: idempotent
      poll: true
      input_schema: {type: object, properties: {path: {type: string}}}
---

You are a careful auditor.
Cite file:line.
`

func mustParse(t *testing.T, text string) (Definition, []Note) {
	t.Helper()
	def, notes, err := Parse("agents/auditor.md", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return def, notes
}

func TestEveryFieldOfAFileIsRead(t *testing.T) {
	def, notes := mustParse(t, full)
	temperature := 0.2
	want := Definition{
		Path: "agents/auditor.md", Name: "auditor",
		Description: "Finds risky code. Use after the map of the repository is known.",
		Prompt:      "You are a careful auditor.\nCite file:line.",
		Tools: []ToolRef{{"read_file", ""}, {"grep", ""}, {"glob", ""}, {"shell", "git log:*, git show:*"}, {"delegate", "historian"},
			{"mcp__github__search", ""}},
		DisallowedTools: []ToolRef{{"write_file", ""}},
		PermissionMode:  spec.ModeBypass, MaxTurns: 12, Skills: []string{"review"},
		MCPServers: []MCPServer{{Name: "github"}, {Name: "local", Config: map[string]any{"command": "npx", "args": []any{"server"}}}},
		Budget:     Budget{Tokens: 12000, USD: 0.5, Share: 0.2}, Delegates: []string{"historian"}, Timeout: 3 * time.Minute,
		Fallback: []string{"openai/gpt-x"}, Temperature: &temperature, Placement: Placement{Pool: "heavy"},
		OutputSchema: "finding.schema.json", Export: true, Policy: `{"stop":"never"}`,
		Other: map[string]any{"color": "blue"},
	}
	commands, at := def.Commands, def.At
	def.Commands, def.At = nil, nil
	if !reflect.DeepEqual(def, want) {
		t.Errorf("got  %+v\nwant %+v", def, want)
	}
	if len(commands) != 1 || commands[0].Command != "make lint" || commands[0].Class != model.Idempotent || !commands[0].Poll ||
		commands[0].Schema != `{"properties":{"path":{"type":"string"}},"type":"object"}` {
		t.Errorf("commands %+v", commands)
	}
	if at["name"] != 2 || at["x-troupe"] != 14 {
		t.Errorf("lines %v", at)
	}
	told := []string{
		"agents/auditor.md:13: color is kept and has no effect here",
	}
	if fmt.Sprint(notes) != fmt.Sprint(told) {
		t.Errorf("notes %v", notes)
	}
}

func TestTheNameOfTheFileIsTheDefaultName(t *testing.T) {
	def, _ := mustParse(t, "---\ndescription: d\n---\np")
	if def.Name != "auditor" {
		t.Errorf("name %q", def.Name)
	}
}

func TestAnUnknownKeyIsANoteWithALineAndTheNearestName(t *testing.T) {
	_, notes := mustParse(t, "---\nname: a\ndescription: d\nmax_turn: 3\n\nwhatever: 1\nmodle: opus\n---\np")
	want := []string{
		`agents/auditor.md:4: unknown key "max_turn" is ignored; did you mean maxTurns?`,
		`agents/auditor.md:6: unknown key "whatever" is ignored`,
		`agents/auditor.md:7: unknown key "modle" is ignored; did you mean model?`,
	}
	if got := fmt.Sprint(notes); got != fmt.Sprint(want) {
		t.Errorf("got %s", got)
	}
}

func TestAnUnknownToolIsANote(t *testing.T) {
	_, notes := mustParse(t, "---\nname: a\ndescription: d\ntools: Grpe, Raed, Bahs, mcp__x__y\n---\np")
	if len(notes) != 3 || notes[0].Text != "no tool is called Grpe; did you mean grep?" || notes[1].Text != "no tool is called Raed; did you mean read?" || notes[2].Text != "no tool is called Bahs; did you mean bash?" {
		t.Errorf("notes %v", notes)
	}
}

func TestAValueOfTheWrongTypeIsAnErrorWithLineAndRemedy(t *testing.T) {
	for line, want := range map[string]string{
		"maxTurns: many":                                          `maxTurns is "many"; write a number of turns, such as 12`,
		"maxTurns: 0":                                             `maxTurns is the number 0; write a number of turns`,
		"tools: {a: maybe}":                                       `tools.a is "maybe"; write true or false`,
		"skills: {a: b}":                                          `skills is a mapping; write a list`,
		"permissionMode: yolo":                                    `permissionMode is "yolo"; write default, acceptEdits`,
		"x-troupe: 3":                                             `x-troupe is the number 3; write a mapping`,
		"x-troupe: {timeout: 3}":                                  `x-troupe.timeout is the number 3; write a duration, such as 90s or 3m`,
		"x-troupe: {budget: {share: 2}}":                          `x-troupe.budget.share is the number 2; write a part`,
		"x-troupe: {budget: {tokens: lots}}":                      `x-troupe.budget.tokens is "lots"; write a number of tokens`,
		"x-troupe: {temperature: hot}":                            `x-troupe.temperature is "hot"; write a number between`,
		"x-troupe: {export: perhaps}":                             `x-troupe.export is "perhaps"; write true or false`,
		"x-troupe: {tools: [{name: a}]}":                          `x-troupe.tools: bad spec: a has no command`,
		"x-troupe: {tools: [{name: a b, command: c}]}":            `x-troupe.tools: name must be 1 to 64 letters`,
		"x-troupe: {tools: [{name: a, command: c, effect: big}]}": `effect class "big"; use read, idempotent`,
		"disallowedTools: ['Read(./secrets/**']":                  `disallowedTools: "Read(./secrets/**" is neither a tool`,
		"disallowedTools: ['Bash(rm:*']":                          `disallowedTools: "Bash(rm:*" is neither a tool`,
		"disallowedTools: ['Edit(**/[)']":                         `disallowedTools: not a permission rule: "edit_file(**/[)"`,
		"disallowedTools: ['Write(~/x)']":                         `disallowedTools: not a permission rule: "write_file(~/x)"`,
		"disallowedTools: ['Bash(git * push)']":                   `a * may stand only at its end`,
		"disallowedTools: ['Grep(../x)']":                         `the path must not contain ..`,
		"description: d":                                          `key "description" is used twice`,
	} {
		_, _, err := Parse("a.md", []byte("---\nname: a\ndescription: d\n"+line+"\n---\np"))
		if !errors.Is(err, ErrField) || !strings.HasPrefix(err.Error(), "a.md:4: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// Many files have names written for people: the agent gets a name that can be part of a
// subject, and a note informs the author.
func TestANameForPeopleBecomesOneThatIsASubjectToken(t *testing.T) {
	for said, want := range map[string]string{"Code Reviewer.*": "code-reviewer", "OpenCoder": "opencoder", "审查": "auditor", "a:b": "a-b"} {
		def, notes := mustParse(t, "---\nname: "+said+"\ndescription: d\n---\np")
		if def.Name != want || len(notes) != 1 || !strings.HasPrefix(notes[0].String(), "agents/auditor.md:2: the agent is called "+want+" here") {
			t.Errorf("%s: %q %v", said, def.Name, notes)
		}
	}
	if _, _, err := Parse("审.md", []byte("---\nname: 查\ndescription: d\n---\np")); !errors.Is(err, ErrField) || !strings.Contains(err.Error(), "such as my-agent") {
		t.Error(err)
	}
}

func TestADescriptionWithAColonIsReadAsOtherToolsDo(t *testing.T) {
	def, notes := mustParse(t, "---\nname: a\ndescription: Use when: it's late. Example: #1\n---\np")
	if def.Description != "Use when: it's late. Example: #1" || len(notes) != 1 {
		t.Errorf("%q %v", def.Description, notes)
	}
}

func TestToolsOfOpenCodeAreReadAsOnAndOff(t *testing.T) {
	def, _ := mustParse(t, "---\ndescription: d\ntools: {write: false, bash: true}\nsteps: 4\n---\np")
	if def.Tools != nil || allowsTool(def, "write_file") || !allowsTool(def, "shell") || def.MaxTurns != 4 {
		t.Errorf("%+v", def)
	}
}

// allowsTool reports whether the definition lets its agent have a tool at all, under
// some arguments at least. A tool of its own is allowed unless it is disallowed;
// a ref in DisallowedTools that names arguments forbids only those, so it does
// not count here.
func allowsTool(d Definition, tool string) bool {
	for _, r := range d.DisallowedTools {
		if r.Args == "" && r.matchesTool(tool) {
			return false
		}
	}
	if d.Tools == nil {
		return true
	}
	for _, c := range d.Commands {
		if c.Name == tool {
			return true
		}
	}
	return slices.ContainsFunc(d.Tools, func(r ToolRef) bool { return r.matchesTool(tool) })
}

func TestAllowsFollowsToolsThenDisallowedTools(t *testing.T) {
	for _, c := range []struct {
		front, tool string
		want        bool
	}{
		{"", "shell", true},
		{"tools: []", "shell", false},
		{"tools: Read", "read_file", true},
		{"tools: Read", "grep", false},
		{"tools: Bash(git log:*)", "shell", true},
		{"disallowedTools: Bash(rm:*)", "shell", true},
		{"disallowedTools: Bash", "shell", false},
		{"tools: Read\ndisallowedTools: read_file", "read_file", false},
		{"tools: mcp__github", "mcp__github__search", true},
		{"tools: mcp__github", "mcp__githubby__search", false},
		{"tools: mcp__*", "mcp__x__y", true},
		{"tools: Read\nx-troupe: {tools: [{name: lint, command: c}]}", "lint", true},
	} {
		def, _ := mustParse(t, "---\ndescription: d\n"+c.front+"\n---\np")
		if allowsTool(def, c.tool) != c.want {
			t.Errorf("%s: Allows(%s) is %v", c.front, c.tool, !c.want)
		}
	}
}

func TestHostileInputIsRefused(t *testing.T) {
	bomb := "a: &a [x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c < 'k'; c++ {
		bomb += fmt.Sprintf("%c: &%c [*%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c]\n", c, c, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1)
	}
	for name, c := range map[string]struct {
		text string
		want error
	}{
		"alias bomb":   {"---\n" + bomb + "---\np", ErrFrontMatter},
		"deep nesting": {"---\na: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "\n---\np", ErrFrontMatter},
		"large file":   {"---\nname: a\n---\n" + strings.Repeat("x", FileBytesMax), ErrTooLarge},
		"large front":  {"---\nname: " + strings.Repeat("x", frontMatterBytesMax) + "\n---\n", ErrTooLarge},
		"not closed":   {"---\nname: a\n", ErrFrontMatter},
		"none":         {"# hello\n", errNoFrontMatter},
		"a list":       {"---\n- a\n---\n", ErrFrontMatter},
		"no YAML":      {"---\na: [\n---\n", ErrFrontMatter},
	} {
		if _, _, err := Parse("a.md", []byte(c.text)); !errors.Is(err, c.want) || !strings.Contains(err.Error(), "a.md") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A directory of agent files is not read beyond a limit, which all its files share: a node holds what it has read.
func TestAttackManyLargeAgentFiles(t *testing.T) {
	dir := t.TempDir()
	for i := range 2 * allFilesBytesMax / FileBytesMax {
		writeFile(t, filepath.Join(dir, fmt.Sprintf("a%02d.md", i)), fmt.Sprintf("---\nname: a%d\ndescription: d\n---\n", i)+strings.Repeat("x", FileBytesMax-64))
	}
	defs, _, err := Load(dir)
	if len(defs) > allFilesBytesMax/FileBytesMax+1 || !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "together") {
		t.Errorf("%d agents, %v", len(defs), err)
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func agentText(name, description string) string {
	return "---\nname: " + name + "\ndescription: " + description + "\n---\np"
}

func TestTheFirstPlaceWinsAndDuplicatesAreNoted(t *testing.T) {
	ws := t.TempDir()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	writeFile(t, ws+"/.claude/agents/a.md", agentText("a", "of claude"))
	writeFile(t, ws+"/.claude/agents/deep/b.md", agentText("b", "of claude"))
	writeFile(t, ws+"/.troupe/agents/a.md", agentText("a", "of troupe"))
	writeFile(t, ws+"/.troupe/agents/README.md", "# These are agents")
	writeFile(t, ws+"/given.md", agentText("c", "given"))
	defs, notes, err := LoadWorkspace(ws, ws+"/given.md")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range defs {
		got = append(got, d.Name+" "+d.Description)
	}
	if fmt.Sprint(got) != "[c given a of troupe b of claude]" {
		t.Errorf("got %v", got)
	}
	if len(notes) != 2 || !strings.Contains(notes[0].Text, "no front matter") || !strings.Contains(notes[1].Text, `agent "a" is defined by `+ws+"/.troupe") {
		t.Errorf("notes %v", notes)
	}
}

func TestABrokenDefinitionIsNotReplacedByALesserOne(t *testing.T) {
	ws := t.TempDir()
	writeFile(t, ws+"/1/a.md", "---\nname: a\ndescription: d\nmaxTurns: x\n---\np")
	writeFile(t, ws+"/2/a.md", agentText("a", "lesser"))
	writeFile(t, ws+"/2/b.md", agentText("b", "fine"))
	defs, _, err := Load(ws+"/1", ws+"/2")
	if !errors.Is(err, ErrField) || len(defs) != 1 || defs[0].Name != "b" {
		t.Errorf("%v %v", defs, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(full))
	f.Add([]byte("---\nname: a\ndescription: x: y\n---\n"))
	f.Add([]byte("---\n? [a]\n: &x {<<: *x}\n---\n"))
	f.Add([]byte("---\ntools: {a: b, ? c}\nmcpServers: [[a]]\nx-troupe: {tools: [1, {input_schema: {1: 2}}], policy: {? {a: b} : c}}\n---\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		def, notes, err := Parse("a.md", data)
		if err == nil && (!spec.IsAgentName(def.Name) || def.Description == "") {
			t.Errorf("accepted %+v", def)
		}
		for _, n := range notes {
			if n.Line < 0 || n.Text == "" {
				t.Errorf("note %+v", n)
			}
		}
	})
}

// Each problem of several files can be shown separately, with its position.
func TestProblemsAreTakenApart(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.md": "---\nname: a\ndescription: A.\nmaxTurns: many\nx-troupe: {budget: {usd: much}}\n---\nx\n",
		"b.md": "---\nname: b\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, _, err := Load(dir)
	var got []string
	for _, p := range SplitProblems(err) {
		got = append(got, fmt.Sprintf("%s:%d %s", filepath.Base(p.Path), p.Line, p.Text()))
	}
	text := strings.Join(got, "\n")
	for _, want := range []string{"a.md:4 bad field: maxTurns", "a.md:5 bad field: x-troupe.budget.usd", "b.md:0 bad front matter: it is not closed"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	if len(got) != 3 || SplitProblems(nil) != nil || SplitProblems(os.ErrInvalid)[0].Path != "" {
		t.Errorf("%d problems: %s", len(got), text)
	}
}
