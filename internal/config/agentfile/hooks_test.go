package agentfile

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
)

const hooksOfOthers = `---
name: mender
description: Mends builds.
hooks:
  PreToolUse:
    - matcher: "Bash|Write|mcp__.*"
      hooks:
        - type: command
          command: ./check.sh
          timeout: 30
        - type: prompt
          prompt: Is this safe?
  Stop:
    - hooks: [{type: command, command: make test}]
  SessionStart:
    - hooks: [{type: command, command: date}]
  PreTooluse: []
x-troupe:
  hooks:
    - {point: output, name: pii, command: ./pii.sh, timeout: 2s, failing: trip}
    - {point: context, name: fold}
    - {point: tool_error, tools: Bash, command: ./mend.sh, report: true, of: child}
---
Mend it.
`

// A pattern about tools of Claude Code is one about troupe's tools.
func TestPatternOfAForeignMatcher(t *testing.T) {
	t.Parallel()
	for matcher, want := range map[string]string{"": "", "*": "*", "Bash|Write": "shell|write_file", "Re.*": "Re.*|read_file", "[R]ead": "[R]ead|read_file", ".*": ".*", "mcp__.*": "mcp__.*",
		"Read.*": "read_file.*", "(Multi)?Edit": "(Multi)?edit_file", "B[a-z]+|Web.+": "B[a-z]+|http_get.+|shell|http_get", "e.*": "e.*", "(": "("} {
		if got := ourTools(matcher); got != want {
			t.Errorf("%q: %q, want %q", matcher, got, want)
		}
	}
}

// TestHooksOfAnAgentFile: in the form of other agent tools, and in ours.
func TestHooksOfAnAgentFile(t *testing.T) {
	def, notes, err := Parse("mender.md", []byte(hooksOfOthers))
	if err != nil {
		t.Fatal(err)
	}
	want := []spec.Hook{
		{Name: "PreToolUse.1", Point: spec.HookPreTool, Tools: "shell|write_file|mcp__.*", Command: "./check.sh", TimeoutMS: 30_000},
		{Name: "Stop.2", Point: spec.HookStop, Command: "make test"},
		{Name: "pii", Point: spec.HookOutput, Command: "./pii.sh", TimeoutMS: 2000, Failing: spec.HookTrip},
		{Name: "fold", Point: spec.HookContext},
		{Name: "tool_error.5", Point: spec.HookToolError, Tools: "shell", Command: "./mend.sh", Report: true, Of: spec.OfChild},
	}
	if !reflect.DeepEqual(def.Hooks, want) {
		t.Errorf("hooks:\n%+v\nwant\n%+v", def.Hooks, want)
	}
	text := ""
	for _, n := range notes {
		text += n.String() + "\n"
	}
	for _, part := range []string{`mender.md:11: hooks.PreToolUse.hooks: a hook of type "prompt" has no effect here`,
		"mender.md:15: hooks.SessionStart is kept and has no effect here", "mender.md:17: hooks.PreTooluse is not an event and is ignored; did you mean PreToolUse?"} {
		if !strings.Contains(text, part) {
			t.Errorf("the notes lack %q:\n%s", part, text)
		}
	}
}

// TestHooksThatMakeNoSense: a hook that would not do what its author wrote is an
// error that says where and what instead.
func TestHooksThatMakeNoSense(t *testing.T) {
	for front, want := range map[string]string{
		"hooks: [a]":                                  "x.md:4: agentfile: bad field: hooks is a list",
		"hooks: {Stop: {}}":                           "hooks.Stop is a mapping",
		"hooks: {Stop: [{hooks: 7}]}":                 "hooks.Stop.hooks is the number 7",
		"hooks: {Stop: [{hooks: [{type: command}]}]}": "a hook has no command",
		"hooks: {PreToolUse: [{matcher: '(', hooks: [{command: x}]}]}": "missing closing )",
		"hooks: {Stop: [{hooks: [{command: x, timeout: soon}]}]}":      "a number of seconds",
		"x-troupe: {hooks: {}}":                                                            "x-troupe.hooks is a mapping",
		"x-troupe: {hooks: [{point: nowhere, command: x}]}":                                `there is no point "nowhere"`,
		"x-troupe: {hooks: [{point: stop, command: x, failing: deny}]}":                    `failing "deny" means nothing at stop`,
		"x-troupe: {hooks: [{name: permission, point: pre_tool, command: x}]}":             "troupe itself has this name",
		"x-troupe: {hooks: [{name: a rule, point: pre_tool, command: x}]}":                 "troupe itself has this name",
		"x-troupe: {hooks: [{name: --yes, point: pre_tool, command: x}]}":                  "troupe itself has this name",
		"x-troupe: {hooks: [{point: output, command: x, severity: huge}]}":                 `there is no severity "huge"; write low, medium, high or critical`,
		"x-troupe: {hooks: [{point: output, name: guardrail:size, command: x}]}":           "troupe itself has this name",
		"x-troupe:\n  guardrails:\n    - secrets\n    - injektion":                         `x.md:7: agentfile: bad field: x-troupe.guardrails: guardrail 2: there is no guardrail "injektion"; did you mean injection?`,
		"x-troupe: {guardrails: {secrets: end}}":                                           "x-troupe.guardrails is a mapping; write a list of guardrails, such as",
		"x-troupe: {guardrails: [[secrets]]}":                                              "x-troupe.guardrails is a list; write a name, such as secrets",
		"x-troupe: {guardrails: [{guardrail: size, byte: 7}]}":                             `unknown key "x-troupe.guardrails.byte"`,
		"x-troupe: {guardrails: [{guardrail: patterns, pattern: '('}]}":                    "patterns are RE2",
		"x-troupe: {hooks: [{point: stop}]}":                                               "neither a command nor the name of a Go function",
		"x-troupe: {hooks: [{point: stop, command: x, of: me}]}":                           `it is of "me"`,
		"x-troupe: {hooks: [" + strings.Repeat("{point: stop, command: x}, ", 64+1) + "]}": "more than 64 hooks",
	} {
		def, _, err := Parse("x.md", []byte("---\nname: x\ndescription: y\n"+front+"\n---\np"))
		if !errors.Is(err, ErrField) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", front, err, want)
		}
		for _, h := range def.Hooks {
			if err := h.Validate(); err != nil {
				t.Errorf("%s: a hook came through: %v", front, err)
			}
		}
	}
}

// TestHooksOfASettingsFile: troupe.yaml is about all agents, so a Stop is the
// root's and a SubagentStop is a child's.
func TestHooksOfASettingsFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "troupe.yaml")
	read := func(text string) ([]spec.Hook, []Note, error) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return LoadHooks(file)
	}
	if hooks, notes, err := LoadHooks(filepath.Join(dir, "none.yaml")); hooks != nil || notes != nil || err != nil {
		t.Errorf("a file that is not there: %v %v %v", hooks, notes, err)
	}
	hooks, notes, err := read("model: builtin/scout\nhooks:\n  Stop: [{hooks: [{command: make test}]}]\n  SubagentStop: [{hooks: [{command: make lint}]}]\n  Setup: []\n")
	want := []spec.Hook{{Name: "Stop.1", Point: spec.HookStop, Command: "make test", Of: spec.OfRoot},
		{Name: "SubagentStop.2", Point: spec.HookStop, Command: "make lint", Of: spec.OfChild}}
	if err != nil || !reflect.DeepEqual(hooks, want) {
		t.Errorf("hooks: %+v, %v", hooks, err)
	}
	if len(notes) != 1 || notes[0].Line != 5 {
		t.Errorf("notes: %v", notes)
	}
	if hooks, _, err = read("hooks: [{point: stop, command: make test}]"); err != nil || len(hooks) != 1 || hooks[0].Of != "" {
		t.Errorf("our form: %+v, %v", hooks, err)
	}
	for text, want := range map[string]string{
		"hooks: [{point: stop, command: x, failing: deny}]": "troupe.yaml:1: ",
		"a: &a [b]\nhooks: *a":                              "troupe.yaml:2: ",
		"hooks: [":                                          "troupe.yaml: ",
		"[]":                                                "",
	} {
		if _, _, err := read(text); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
