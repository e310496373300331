package agentfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
)

// A description of many lines, with what looks like keys in it, is how Claude
// Code's own generator writes them. The lines of what follows stay right.
func TestADescriptionOfManyLinesIsReadAsOtherToolsDo(t *testing.T) {
	def, notes := mustParse(t, `---
name: guard
description: Use this agent for brands. Examples:\n\n<example>
Context: a new app

user: "We need \"one\": now"
</example>
model: sonnet
color: red
tools: Read, Grpe
---
p`)
	want := "Use this agent for brands. Examples:\\n\\n<example>\nContext: a new app\n\nuser: \"We need \\\"one\\\": now\"\n</example>"
	if def.Description != want || def.Model != "sonnet" || len(def.Tools) != 2 {
		t.Errorf("%q %+v", def.Description, def)
	}
	if len(notes) != 3 || notes[1].Line != 9 || notes[2].Line != 10 {
		t.Errorf("notes %v", notes)
	}
}

func TestAllToolsMeansTheParentsTools(t *testing.T) {
	for _, text := range []string{"*", `"*"`, `["*"]`, "All tools", "Read, *", "all"} {
		if def, _ := mustParse(t, "---\ndescription: d\ntools: "+text+"\n---\np"); def.Tools != nil {
			t.Errorf("%s: %v", text, def.Tools)
		}
	}
}

func TestAgentsInTheToolListAreDelegates(t *testing.T) {
	for text, want := range map[string][]string{
		"tools: Read, Agent(scout, plugin:deep-scout)":              {"scout", "deep-scout"},
		"tools: Task(Code Reviewer)":                                {"code-reviewer"},
		"tools: Read, Agent(scout), Agent":                          nil,
		"tools: Read":                                               nil,
		"tools: Agent(scout)\nx-troupe: {delegates: []}":            {},
		"permission: {task: {scout: allow, '*': deny, 'x-*': ask}}": {"scout"},
		"permission: {task: {scout: deny, '*': allow}}":             nil,
		"permission: {task: {'*': deny}}":                           {},
	} {
		def, _ := mustParse(t, "---\ndescription: d\n"+text+"\n---\np")
		if !slices.Equal(def.Delegates, want) || (def.Delegates == nil) != (want == nil) {
			t.Errorf("%s: %#v", text, def.Delegates)
		}
	}
}

// What OpenCode allows has no effect here; what it denies is removed, and a tool that is
// denied in part is removed as a whole.
func TestPermissionsOfOpenCodeOnlyTakeAway(t *testing.T) {
	for text, gone := range map[string][]string{
		"permission: {edit: deny, bash: allow}":                  {"edit_file", "write_file"},
		"permission: {bash: {'git log*': allow, '*': deny}}":     {"shell"},
		"permission: {bash: {'git log*': allow, 'rm*': ask}}":    nil,
		"permission: {webfetch: deny}":                           {"http_get"},
		"permission: deny":                                       {"read_file", "write_file", "edit_file", "shell", "http_get"},
		"permission: allow":                                      nil,
		"tools: {write: false, edit: false, 'mcp__x__*': false}": {"edit_file", "write_file", "mcp__x__y"},
	} {
		def, _ := mustParse(t, "---\ndescription: d\n"+text+"\n---\np")
		for _, tool := range []string{"read_file", "write_file", "edit_file", "shell", "http_get", "mcp__x__y"} {
			if want := !slices.Contains(gone, tool) && !(text == "permission: deny" && tool == "mcp__x__y"); allowsTool(def, tool) != want {
				t.Errorf("%s: Allows(%s) is %v", text, tool, !want)
			}
		}
	}
	for text, want := range map[string]string{
		"permission: {edit: never}":              `permission.edit is "never"; write allow, ask or deny`,
		"permission: [edit]":                     "permission is a list; write allow, ask, deny or a mapping",
		"permission: {bash: {'rm*': sometimes}}": `permission.bash.rm* is "sometimes"`,
	} {
		if _, _, err := Parse("a.md", []byte("---\nname: a\ndescription: d\n"+text+"\n---\np")); !errors.Is(err, ErrField) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestToolsOfOtherProgramsAreNamedInOneNote(t *testing.T) {
	def, notes := mustParse(t, "---\ndescription: d\ntools: Read, WebSearch, TodoWrite, TaskGet, SendMessage, AskUserQuestion, github/issues\nemoji: x\ncolor: red\n---\np")
	want := "[agents/auditor.md:4: emoji, color are kept and have no effect here agents/auditor.md:3: troupe has no WebSearch, TodoWrite, TaskGet; the agent goes without]"
	if fmt.Sprint(notes) != want || !allowsTool(def, "send_message") || !allowsTool(def, "ask_human") || !allowsTool(def, "mcp__github__issues") {
		t.Errorf("%v", notes)
	}
}

func TestOpenCodeFilesAreFoundAndMayBeDisabled(t *testing.T) {
	ws := t.TempDir()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	writeFile(t, ws+"/.opencode/agent/docs.md", "---\ndescription: Writes.\nmode: subagent\nmodel: anthropic/claude-x\ntemperature: 0.1\nsteps: 5\n---\np")
	writeFile(t, ws+"/.opencode/agents/deep/old.md", "---\ndescription: Was.\ndisable: true\n---\np")
	defs, notes, err := LoadWorkspace(ws)
	if err != nil || len(defs) != 1 || defs[0].Name != "docs" || defs[0].Model != "anthropic/claude-x" || *defs[0].Temperature != 0.1 || defs[0].MaxTurns != 5 {
		t.Errorf("%+v %v", defs, err)
	}
	if len(notes) != 2 || notes[1].Text != "skipped: its file disables it" {
		t.Errorf("%v", notes)
	}
}

// Bytes that are not text are refused with their position, and never read in part.
func TestBytesThatAreNoTextAreNamedByFileAndLine(t *testing.T) {
	for text, want := range map[string]string{
		"---\nname: a\ndescription: a\x00b\n---\np":        "a.md:3: agentfile: bad front matter: there is a NUL byte",
		"---\nname: a\ndescription: \xff\xfe\n---\np":      "a.md:3: agentfile: bad front matter: it is not UTF-8",
		"\xff\xfe-\x00-\x00-\x00\n\x00":                    "a.md: agentfile: bad front matter: it is UTF-16; save it as UTF-8",
		"---\nname: a\ndescription: d\ntools:\n\t- x\n---": "a.md:5: agentfile: bad front matter: found character that cannot start any token",
		"---\nname: a\na: &x [1]\ndescription: *x\n---\np": "a.md:4: agentfile: bad front matter: YAML aliases",
	} {
		if _, _, err := Parse("a.md", []byte(text)); !errors.Is(err, ErrFrontMatter) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	def, notes := mustParse(t, "\xEF\xBB\xBF---\r\nname: a\r\ndescription: d\r\n---\r\nBe \x00kind\xff.\r\nNow.\r\n")
	if def.Name != "a" || def.Prompt != "Be \uFFFDkind\uFFFD.\nNow." || len(notes) != 1 {
		t.Errorf("%+v %v", def, notes)
	}
}

// The loader survives directory entries that are not regular files.
func TestNonRegularFilesAreReported(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir+"/good.md", agentText("good", "d"))
	if err := os.Symlink("/dev/zero", filepath.Join(dir, "zero.md")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir+"/none.md", filepath.Join(dir, "gone.md")); err != nil {
		t.Fatal(err)
	}
	defs, _, err := Load(dir)
	if len(defs) != 1 || err == nil || !strings.Contains(err.Error(), "zero.md") || !strings.Contains(err.Error(), "gone.md") {
		t.Errorf("%v %v", defs, err)
	}
}

func FuzzParseOfPlainText(f *testing.F) {
	f.Add([]byte("name: a\ndescription: Use: it\nuser: \"x\"\ntools: *\n"))
	f.Add([]byte("description: a: b\r\n\r\nContext: c\r\npermission: {task: {a: b}}\r\n"))
	f.Add([]byte("permission: {bash: {'*': deny}}\ntools: {a: true}\ndisable: x\nmodel: `a`\n"))
	f.Fuzz(func(t *testing.T, front []byte) {
		for _, mend := range []func([]byte) ([]byte, bool){quoteTexts, gatherTexts} {
			if lenient, _ := mend(front); strings.Count(string(lenient), "\n") != strings.Count(string(front), "\n") {
				t.Errorf("%q: the lines of %q are not those of the file", front, lenient)
			}
		}
		def, _, err := Parse("a.md", slices.Concat([]byte("---\n"), front, []byte("\n---\np")))
		if err == nil && (!spec.IsAgentName(def.Name) || def.Description == "") {
			t.Errorf("accepted %+v", def)
		}
	})
}

// A deny in OpenCode's form is kept, whatever else a file says.
func TestOpenCodeDeniesAreKept(t *testing.T) {
	def, notes := mustParse(t, "---\ndescription: d\npermission:\n  task: {\"*\": allow, deployer: deny, helper: allow}\n---\np")
	if !slices.Equal(def.Delegates, []string{"helper"}) || len(notes) == 0 || !strings.Contains(notes[len(notes)-1].Text, "deployer") {
		t.Errorf("%v %v", def.Delegates, notes)
	}
	if def, _ := mustParse(t, "---\ndescription: d\npermission: {task: {\"*\": allow}}\n---\np"); def.Delegates != nil {
		t.Errorf("%v", def.Delegates)
	}
	if def, _ := mustParse(t, "---\ndescription: d\npermission: deny\ntools: Bash, Write\n---\np"); !slices.Contains(def.DeniedTools(), "*") {
		t.Errorf("%v", def.DeniedTools())
	}
}
