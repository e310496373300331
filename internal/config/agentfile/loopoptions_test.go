package agentfile

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/schema"
	"github.com/troupe-run/troupe/model"
)

func agentFileText(own string) string {
	return "---\nname: a\ndescription: d\nx-troupe:\n  " + strings.ReplaceAll(own, "\n", "\n  ") + "\n---\np"
}

func TestAnAgentFileSaysHowItsLoopBehaves(t *testing.T) {
	watch, breaker := spec.DefaultLoopOptions().Watch, spec.DefaultLoopOptions().Breaker
	watch.Identical, breaker.Failures = 5, spec.Off
	polled := spec.Watch{Polling: []string{"check_job", "read_file"}}
	for text, want := range map[string]spec.LoopOptions{
		"require: {evidence: [Grep, shell=ok, {tool: Read, contains: a=b}], tries: 3}": {Require: spec.Require{Tries: 3,
			Evidence: []spec.Evidence{{Tool: "grep"}, {Tool: "shell", Contains: "ok"}, {Tool: "read_file", Contains: "a=b"}}}},
		"continue: 50_000": {Continue: spec.Continue{Tokens: 50000}},
		"continue: {tokens: 9, percent: 80, small: 7, rounds: 2}": {Continue: spec.Continue{Tokens: 9, Percent: 80, Small: 7, Rounds: 2}},
		"continue: off":         {Continue: spec.Continue{Tokens: spec.Off}},
		"watch: {identical: 5}": {Watch: watch},
		"watch: off":            {Watch: spec.Watch{Of: spec.Off}},
		"watch: false\npolling: [check_job, Read]": {Watch: spec.Watch{Of: spec.Off, Polling: polled.Polling}},
		"polling: check_job, Read":                 {Watch: polled},
		"breaker: {failures: 0}":                   {Breaker: breaker},
		"breaker: off":                             {Breaker: spec.Breaker{Failures: spec.Off, Forbidden: spec.Off}},
		"context: {percent: 50, tail: 5, prune_tail: 2, within: 9, summary_tokens: 500, model: ollama/x}": {Context: spec.Context{Percent: 50,
			Tail: 5, PruneTail: 2, Within: 9, Summary: 500, Model: &spec.Model{Name: "ollama/x"}}},
		"context: off":    {Context: spec.Context{Percent: spec.Off}},
		"tool_retries: 0": {ToolRetries: spec.Off},
		"tool_retries: 2": {ToolRetries: 2},
	} {
		def, notes, err := Parse("a.md", []byte(agentFileText(text)))
		if err != nil || len(notes) > 0 || !reflect.DeepEqual(def.LoopOptions, want) {
			t.Errorf("%s: %+v, want %+v (%v %v)", text, def.LoopOptions, want, notes, err)
		}
	}
}

func TestMannersThatMakeNoSenseAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"buget: {}":                            `a.md:5: agentfile: bad field: unknown key "x-troupe.buget"; did you mean budget?`,
		"continue: {token: 4}":                 `a.md:5: agentfile: bad field: unknown key "x-troupe.continue.token"; did you mean tokens?`,
		"budget: {token: 4}":                   `unknown key "x-troupe.budget.token"; did you mean tokens?`,
		"continue: many":                       `x-troupe.continue is "many"; write a number of output tokens`,
		"continue: 0":                          "write a number of output tokens",
		"continue: {tokens: 9, percent: 200}":  "continue.percent is 200, it may be 0 to 100",
		"require: [grep]":                      "x-troupe.require is a list; write a mapping",
		"require: {evidence: grep}":            "write a list, such as [grep,",
		"require: {evidence: [{contains: x}]}": "require.evidence has no tool",
		"require: {schema: {$ref: '#'}}":       "leads back to itself",
		"output_schema: {type: [3]}":           "the schema of the answer",
		"watch: {of: 6.5.1}":                   "write a number",
		"watch: {of: 101}":                     "watch.of is 101",
		"breaker: {failure: 2}":                "did you mean failures?",
		"context: {percent: 99}":               "context.percent is 99",
		"tool_retries: 4":                      "tool_retries is 4",
		"fallback: [a/a, b/b, c/c, d/d]":       "fallback names 4 models, at most 3 are tried",
	} {
		if _, _, err := Parse("a.md", []byte(agentFileText(text))); !errors.Is(err, ErrField) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestSchemaIsReadOnlyFromTheFilesDirectory(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir+"/outside.json", `{"type":"object"}`)
	writeFile(t, dir+"/agents/schemas/finding.json", `{"type":"object","required":["a"]}`)
	writeFile(t, dir+"/agents/schemas/text.json", `no JSON`)
	writeFile(t, dir+"/agents/schemas/large.json", `{"description":"`+strings.Repeat("x", schema.BytesMax)+`"}`)
	load := func(ref string) (spec.LoopOptions, error) {
		writeFile(t, dir+"/agents/a.md", agentFileText("output_schema: "+ref))
		defs, _, err := Load(dir + "/agents")
		if len(defs) == 0 {
			return spec.LoopOptions{}, err
		}
		return defs[0].LoopOptions, err
	}
	if m, err := load("schemas/finding.json"); err != nil || m.Require.Schema != `{"type":"object","required":["a"]}` {
		t.Errorf("%+v %v", m, err)
	}
	if m, err := load("{type: string}"); err != nil || m.Require.Schema != `{"type":"string"}` {
		t.Errorf("%+v %v", m, err)
	}
	for ref, want := range map[string]string{
		"../outside.json": "leads out", dir + "/outside.json": "leads out", "schemas": "not a regular file", "none.json": "no such file",
		"schemas/text.json": "not a JSON object", "schemas/large.json": "bytes, at most",
	} {
		_, err := load(ref)
		if !errors.Is(err, ErrField) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", ref, err)
		}
		if list := SplitProblems(err); len(list) != 1 || list[0].Path != dir+"/agents/a.md" || list[0].Line != 5 {
			t.Errorf("%s: it is not said where: %+v", ref, list)
		}
	}
}

//behaviour:shows C2
func TestAFileOfSettingsSaysItForAllAgents(t *testing.T) {
	path := filepath.Join(t.TempDir(), "troupe.yaml")
	if got, err := LoadShared(path); err != nil || !reflect.DeepEqual(got, SharedSettings{}) {
		t.Errorf("%+v %v", got, err)
	}
	writeFile(t, path, "model: a/b\nhooks: [1]\ncontinue: 900\nrequire: {schema: s.json}\ntools:\n  Bash: {class: irreversible}\n  check_job: {poll: true}\n")
	writeFile(t, filepath.Dir(path)+"/s.json", `{"type":"object"}`)
	got, err := LoadShared(path)
	want := SharedSettings{LoopOptions: spec.LoopOptions{Continue: spec.Continue{Tokens: 900}, Require: spec.Require{Schema: `{"type":"object"}`}},
		OutputSchema: "s.json",
		Tools:        []ToolRule{{Name: "check_job", Poll: true, Line: 7}, {Name: "shell", Class: model.Irreversible, Line: 6}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v %v", got, err)
	}
	for text, want := range map[string]string{
		"a: 1\ncontinue: {token: 4}\n":                `troupe.yaml:2: agentfile: bad field: unknown key "continue.token"; did you mean tokens?`,
		"tools: [shell]\n":                            "write a mapping of tools",
		"tools: {shell: effect}\n":                    "tools.shell is \"effect\"; write a mapping",
		"tools: {shell: {class: harmless}}\n":         "write read, idempotent, effect or irreversible",
		"tools: {shell: {clas: effect}}\n":            "did you mean class?",
		"tools: {shell: {poll: 3}}\n":                 "write true or false",
		"tools: {shell: {}, Bash: {class: effect}}\n": "set twice",
		"watch: &a {of: 3}\nbreaker: *a\n":            "aliases",
		"watch: {\n":                                  "troupe.yaml",
	} {
		writeFile(t, path, text)
		if _, err := LoadShared(path); !errors.Is(err, ErrField) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// FuzzParseShared: whatever the file holds, reading it ends with a word.
func FuzzParseShared(f *testing.F) {
	f.Add([]byte("tools: {a: {class: read}}\nwatch: off\ncontinue: 3\n"))
	f.Fuzz(func(_ *testing.T, data []byte) { _, _ = parseShared("troupe.yaml", data) })
}

// A rule that is a number or a truth value would be taken for the name of a tool that nobody has: it would deny nothing.
func TestRulesAreTexts(t *testing.T) {
	for text, want := range map[string]string{
		"permissions: {deny: 7}":         "troupe.yaml:1: agentfile: bad field: permissions.deny is the number 7; write a rule as a text",
		"permissions:\n  deny:\n  - 7":   "troupe.yaml:3: agentfile: bad field: permissions.deny is the number 7",
		"permissions: {ask: [true]}":     "troupe.yaml:1: agentfile: bad field: permissions.ask is the word true",
		"permissions: {deny: [~]}":       "troupe.yaml:1: agentfile: bad field: permissions.deny",
		"permissions: {allow: [1.5]}":    "troupe.yaml:1: agentfile: bad field: permissions.allow is the number 1.5",
		`permissions: {deny: ["7"]}`:     "",
		"permissions: {deny: [Foo]}":     "",
		"permissions: {deny: read_file}": "",
	} {
		_, err := parseShared("troupe.yaml", []byte(text))
		if got := fmt.Sprint(err); (want == "") != (err == nil) || !strings.Contains(got, want) && want != "" {
			t.Errorf("%q: %s", text, got)
		}
	}
	for _, text := range []string{"disallowedTools: 7", "disallowedTools: [Bash, 7]", "x-troupe:\n  permissions: {deny: [7]}"} {
		if _, _, err := Parse("a.md", []byte("---\nname: a\ndescription: d\n"+text+"\n---\np")); err == nil || !strings.Contains(err.Error(), "the number 7") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
