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

func parseClaude(own bool, text string) (ClaudeSettings, error) {
	r := claudeReader{out: ClaudeSettings{Name: "s.json", Own: own}, home: "/home/u", d: newDecoder("s.json", &Definition{})}
	err := r.readFile([]byte(text))
	return r.out, err
}

func ruleTexts(p spec.Permissions) string {
	var list []string
	for kind, rules := range map[string][]spec.PermissionRule{"allow": p.Allow, "ask": p.Ask, "deny": p.Deny} {
		for _, r := range rules {
			list = append(list, kind+" "+r.Text)
		}
	}
	slices.Sort(list)
	return strings.Join(append(list, string(p.Mode)), "|")
}

func TestRulesOfClaudeCode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		own              bool
		text, want, lost string
	}{
		{true, `{}`, "", ""},
		{true, "\uFEFF" + `{"permissions": {"allow": ["Bash(git log:*)", "mcp__github__get_*"]}, "theme": "dark"}`, "allow mcp__github__get_*|allow shell(git log:*)|", ""},
		{false, `{"permissions": {"allow": ["Bash"], "deny": ["Read(~/.ssh/**)", "mcp__db"]}}`, "deny mcp__db|deny read_file(//home/u/.ssh/**)|", "permissions.allow (this file may come from anyone"},
		{true, `{"permissions": {"deny": ["Edit(/docs/**)", "WebFetch(domain:a.com)", "Agent(My Helper)", "Bash"], "ask": ["WebSearch", "PowerShell(x)"]}}`,
			"deny delegate(my-helper)|deny edit_file(/docs/**)|deny http_get(domain:a.com)|deny shell|", "rules for WebSearch, PowerShell (troupe has no such tools)"},
		{false, `{"permissions": {"deny": ["deploy", "mcp__*", "*", "Task(*)"]}}`, "deny *|deny delegate(*)|deny deploy|deny mcp__*|", ""}, // deploy may be a command of an agent file
		{true, `{"permissions": {"allow": ["Bash(git * main)", "Bash(ls)"]}}`, "allow shell(ls)|", `1 rules that allow and cannot be read, such as "Bash(git * main)"`},
		{true, `{"permissions": {"defaultMode": "acceptEdits"}}`, "acceptEdits", ""},
		{false, `{"permissions": {"defaultMode": "acceptEdits"}}`, "", "permissions.defaultMode acceptEdits"},
		{false, `{"permissions": {"defaultMode": "plan"}}`, "plan", ""},
		{true, `{"permissions": {"defaultMode": "bypassPermissions"}}`, "", "permissions.defaultMode bypassPermissions"},
		{true, `{"permissions": {"defaultMode": "auto"}}`, "", "permissions.defaultMode auto"},
		{false, `{"permissions": {"deny": ["NotebookEdit"], "ask": ["NotebookEdit(/a.ipynb)"]}}`, "ask edit_file(/a.ipynb)|deny edit_file(**/*.ipynb)|", ""},
		{true, `{"permissions": {"allow": ["NotebookEdit"]}}`, "", "rules for NotebookEdit (troupe has no such tools)"},
		{true, `{"sandbox": {}, "a\u001bb": 1, "permissions": {"additionalDirectories": []}}`, "", "permissions.additionalDirectories;sandbox, a?b"},
	} {
		got, err := parseClaude(c.own, c.text)
		if err != nil || ruleTexts(got.Permissions) != c.want || !strings.HasPrefix(strings.Join(got.Without, ";"), c.lost) || (c.lost == "") != (len(got.Without) == 0) {
			t.Errorf("%s: %s, %q, %v", c.text, ruleTexts(got.Permissions), got.Without, err)
		}
	}
}

// A rule that is lost could let a call run that its author wanted to prevent.
func TestABrokenFileOfClaudeCodeIsAnError(t *testing.T) {
	t.Parallel()
	var keys strings.Builder
	for i := range claudeItemsMax {
		fmt.Fprintf(&keys, `"key%d": 1,`, i)
	}
	for text, want := range map[string]string{
		"":                                      "s.json:1: agentfile: bad field: it is not JSON",
		"[]":                                    "s.json:1: agentfile: bad field: it must be an object",
		"{\n\"a\": \"\xff\"}":                   "s.json:2: agentfile: bad field: the file is not UTF-8",
		"{\n\"permissions\": {\n\"deny\": [,]}": "s.json:3: agentfile: bad field: it is not JSON",
		"{\"permissions\": {\"deny\": [\n\"Read(../x)\",\n\"Bash(git * main)\"]}}":             "s.json:2: agentfile: bad field: permissions.deny: not a permission rule",
		`{"permissions": {"deny": ["Raed(./x)"]}}`:                                             "did you mean read?",
		`{"permissions": {"deny": ["Read*"]}}`:                                                 "names of tools differ here",
		`{"permissions": {"ask": ["*Edit"]}}`:                                                  "names of tools differ here",
		`{"permissions": {"deny": ["Task(foo-*)"]}}`:                                           "takes exactly one name",
		`{"permissions": {"deny": ["Bash(rm:*"]}}`:                                             `the ")" of "Bash(rm:*" is missing: write "Bash(rm:*)"`,
		`{"permissions": {"deny": ["Agent(a, b)"]}}`:                                           "write a rule for each agent",
		`{"permissions": {"deny": "Bash"}}`:                                                    "write a list of rules",
		`{"permissions": {"ask": [1]}}`:                                                        "permissions.ask is the number 1",
		`{"permissions": {"denny": ["Bash"]}}`:                                                 `unknown key "denny"; did you mean deny?`,
		`{"permissions": {"defaultMode": "plna"}}`:                                             "write default, acceptEdits",
		`{"permissions": {}, "permissions": {"deny": ["Bash"]}}`:                               `key "permissions" is used twice`,
		`{"permissions": {"disableBypassPermissionsMode": true}}`:                              `write "disable"`,
		`{"permissions": []}`:                                                                  "permissions is a list",
		strings.Repeat("[", 40) + strings.Repeat("]", 40):                                      "nested more than 32 levels deep",
		`{"permissions": {"deny": [` + strings.Repeat(`"Bash(a)",`, rulesMax) + `"Bash(b)"]}}`: "more than 256 rules",
		`{"permissions": {"allow": [` + strings.Repeat(`"a",`, claudeItemsMax) + `"b"]}}`:      "more than 1000 rules",
		`{"x": [` + strings.Repeat("1,", jsonNodesMax) + `1]}`:                                 "more than 20000 values",
		"{" + keys.String() + `"b": 1}`:                                                        "more than 1000 keys",
	} {
		if _, err := parseClaude(true, text); !errors.Is(err, ErrField) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v", text, err)
		}
	}
}

// Claude Code adds a rule with each approval, so a long file must not refuse every run.
func TestManyRulesThatAllowAreCut(t *testing.T) {
	t.Parallel()
	var list []string
	for i := range 300 {
		list = append(list, fmt.Sprintf("%q", fmt.Sprintf("Bash(tool%d:*)", i)))
	}
	got, err := parseClaude(true, `{"permissions": {"allow": [`+strings.Join(list, ",")+`]}}`)
	if err != nil || len(got.Permissions.Allow) != claudeAllowMax || !strings.HasPrefix(got.Without[0], "172 rules that allow, after the first 128") {
		t.Errorf("%d rules, %q, %v", len(got.Permissions.Allow), got.Without, err)
	}
}

// The user's own file counts as that only where no run can change it, and once.
func TestReadClaudeSettings(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	writeFile(t, home+"/.claude/settings.json", `{"permissions": {"allow": ["Bash"]}}`)
	writeFile(t, home+"/p/.claude/settings.local.json", `{"permissions": {"deny": ["Bash"]}}`)
	for _, protected := range []bool{true, false} {
		for dir, want := range map[string]int{"": 1, home: 1, home + "/p": 2} {
			list, err := ReadClaudeSettings(home+"/.claude", dir, func(string, string) bool { return protected })
			if err != nil || len(list) != want || list[0].Own != protected || (len(list[0].Permissions.Allow) == 1) != protected {
				t.Errorf("%q: %+v %v", dir, list, err)
			}
		}
	}
	if err := errors.Join(os.Mkdir(home+"/q", 0o700), os.Mkdir(home+"/q/.claude", 0o700), os.Symlink("../../.claude/settings.json", home+"/q/.claude/settings.json")); err != nil {
		t.Fatal(err)
	}
	if list, err := ReadClaudeSettings("", filepath.Join(home, "q"), nil); err == nil {
		t.Errorf("a link out of the directory: %+v", list)
	}
}

func TestTheHomeOfARuleIsNoPattern(t *testing.T) {
	for home, want := range map[string]string{"/h/a[b]{c}": `read_file(//h/a\[b\]\{c\}/.ssh/**)`, "rel": ""} {
		t.Setenv("HOME", home)
		dir := t.TempDir()
		writeFile(t, dir+"/.claude/settings.json", `{"permissions": {"deny": ["Read(~/.ssh/**)"]}}`)
		list, err := ReadClaudeSettings("", dir, nil)
		if (err != nil) != (want == "") || want != "" && ruleTexts(list[0].Permissions) != "deny "+want+"|" {
			t.Errorf("%s: %+v %v", home, list, err)
		}
	}
}

// Hooks of the user's own file are for all agents; what troupe would carry out otherwise is left out, with a note.
func TestHooksOfClaudeCode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	load := func(text string) ([]spec.Hook, []Note, error) {
		writeFile(t, dir+"/settings.json", text)
		writeFile(t, dir+"/troupe.yaml", "hooks: {Stop: [{hooks: [{command: make}]}]}\n")
		return LoadHooks(dir+"/troupe.yaml", dir+"/settings.json")
	}
	hooks, notes, err := load(`{"hooks": {
		"PreToolUse": [{"matcher": "Bash|Edit", "hooks": [{"type": "command", "command": "./check", "timeout": 5}, {"type": "command", "command": "./if", "if": "Bash(rm *)"}]}],
		"PostToolUse": [{"matcher": "*", "hooks": [{"type": "command", "command": "./log"}]}],
		"Stop": [{"hooks": [{"type": "command", "command": "./stop", "async": true}, {"type": "prompt", "prompt": "Done?"}]}],
		"SessionStart": [{"hooks": [{"type": "command", "command": "./start"}]}]}}`)
	if err != nil || len(hooks) != 4 {
		t.Fatalf("%+v %v", hooks, err)
	}
	if h := hooks[1]; h.Name != "claude.PreToolUse.1" || h.Point != spec.HookPreTool || h.Tools != "shell|edit_file" || h.Command != "./check" || h.TimeoutMS != 5000 {
		t.Errorf("%+v", h)
	}
	if h := hooks[3]; h.Of != spec.OfRoot || h.Point != spec.HookStop {
		t.Errorf("%+v", h)
	}
	var text []string
	for _, n := range notes {
		text = append(text, strings.TrimPrefix(n.String(), dir+"/settings.json:"))
	}
	for _, want := range []string{`2: a hook with the key "if" has no effect here`, `a hook of type "prompt" has no effect here`, "5: hooks.SessionStart is kept and has no effect here"} {
		if !strings.Contains(strings.Join(text, "\n"), want) {
			t.Errorf("no %q in %q", want, text)
		}
	}
	if hooks, _, err = load(`{"disableAllHooks": true, "hooks": {"Stop": [{"hooks": [{"command": "x"}]}]}}`); err != nil || len(hooks) != 1 {
		t.Errorf("%+v %v", hooks, err)
	}
	if _, _, err = load("{\"hooks\": {\n\"Stop\": \"x\"}}"); err == nil || !strings.Contains(err.Error(), "settings.json:2: agentfile: bad field: hooks.Stop") {
		t.Error(err)
	}
	if _, _, err = load(`{"hooks": [`); err == nil {
		t.Error("broken JSON")
	}
}

func FuzzClaudeSettings(f *testing.F) {
	f.Add(`{"permissions": {"allow": ["Bash(a)"], "deny": [null, {}], "defaultMode": "plan"}, "x": [[1, "é\ud83d"]]}`)
	f.Fuzz(func(_ *testing.T, text string) {
		_, _ = parseClaude(len(text)%2 == 0, text)
		_, _, _ = parseClaudeHooks("s.json", []byte(text), nil)
	})
}
