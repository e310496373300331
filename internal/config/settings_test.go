package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The environment takes precedence over the directory's file, and that over the user's.
func TestSettingsPrecedence(t *testing.T) {
	dir := t.TempDir()
	user := filepath.Join(dir, "user.yaml")
	writeFile(t, user, "model: user/m\nmax_turns: 3\ncolor: never\nstore_dir: state\n")
	writeFile(t, filepath.Join(dir, FileName), "# a comment\nmodel: dir/m\nmax_turns: 5\njson_schema: answer.json\n")
	env := map[string]string{"TROUPE_MODEL": "env/m"}
	got, err := Load(SettingSources{Dir: dir, User: user, Getenv: func(k string) string { return env[k] }})
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]Setting{
		"model":       {Key: "model", Value: "env/m", From: "TROUPE_MODEL"},
		"max_turns":   {Key: "max_turns", Value: "5", From: filepath.Join(dir, FileName) + ":3", Raised: true},
		"color":       {Key: "color", Value: "never", From: user + ":3"},
		"store_dir":   {Key: "store_dir", Value: filepath.Join(dir, "state"), From: user + ":4"},
		"json_schema": {Key: "json_schema", Value: filepath.Join(dir, "answer.json"), From: filepath.Join(dir, FileName) + ":4", Below: dir},
	} {
		if got[key] != want {
			t.Errorf("%s: %+v, want %+v", key, got[key], want)
		}
	}
	if len(got) != 5 {
		t.Errorf("%+v", got)
	}
}

// Keys that other packages read are accepted, and not returned as settings.
func TestListsAndKeysOfOtherReaders(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, FileName), "fallback: [a/b, c/d]\nwatch: {of: 3}\ntools:\n  shell: {class: effect}\nuse_tokens: 9\n")
	got, err := Load(SettingSources{Dir: dir, User: filepath.Join(dir, "none"), Getenv: func(string) string { return "" }})
	if err != nil || len(got) != 2 || got["fallback"].Value != "a/b,c/d" || got["use_tokens"].Value != "9" {
		t.Errorf("%+v %v", got, err)
	}
}

func TestFlagNameOfASetting(t *testing.T) {
	if f := (Setting{Key: "max_turns"}).Flag(); f != "max-turns" {
		t.Error(f)
	}
}

func TestInvalidSettingsAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"model: a/b\nmax_turn: 3\n":             `:2: unknown key "max_turn"; did you mean max_turns?`,
		"maxBudgetUsd: 3\n":                     "did you mean max_budget_usd?",
		"something_else_entirely: 1\n":          "the keys are a2a_agents, allow_unbounded, allow_unpriced, backlog_lease, breaker, closing_tokens, ",
		"timeout: soon\n":                       `:1: timeout: "soon" is not a duration`,
		"max_tokens: many\n":                    "is not a whole number",
		"max_tokens: -1\n":                      ":1: max_tokens: -1 must not be negative",
		"max_turns: -4\n":                       ":1: max_turns: -4 must not be negative",
		"max_budget_usd: cheap\n":               "is not an amount",
		"max_budget_usd: nan\n":                 "is not an amount",
		"max_budget_usd: 1e999\n":               "is not an amount",
		"fallback: [[a]]\n":                     ":1: fallback: expected a list of texts",
		"fallback: {a: b}\n":                    ":1: fallback: expected one value",
		"watch: off\nwatch: off\n":              "watch is set twice",
		"model: [a]\n":                          ":1: model: expected one value",
		"model: a\nmodel: b\n":                  "",
		"- model\n":                             "expected `key: value` lines",
		"model: {\n":                            "troupe.yaml",
		strings.Repeat("x", 80) + ": nothing\n": "the keys are",
	} {
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, FileName), text)
		_, err := Load(SettingSources{Dir: dir, User: filepath.Join(dir, "none"), Getenv: func(string) string { return "" }})
		if !errors.Is(err, ErrSetting) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestEmptySettings(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, FileName), "# nothing\n")
	got, err := Load(SettingSources{Dir: dir, User: filepath.Join(dir, "none"), Getenv: func(string) string { return "" }})
	if err != nil || len(got) != 0 {
		t.Errorf("%v %v", got, err)
	}
	writeFile(t, filepath.Join(dir, FileName), "model:\n")
	if got, err = Load(SettingSources{Dir: dir, User: filepath.Join(dir, "none"), Getenv: func(string) string { return "" }}); err != nil || len(got) != 0 {
		t.Errorf("%v %v", got, err)
	}
}

func TestNearestNameOfASetting(t *testing.T) {
	names := []string{"max-turns", "max-tokens", "model", "output"}
	for word, want := range map[string]string{"max_turn": "max-turns", "maxtokens": "max-tokens", "modle": "model", "zzz": ""} {
		if got := NearestName(word, names); got != want {
			t.Errorf("%s: %q, want %q", word, got, want)
		}
	}
}

// Keys without a flag are in the same file, for other packages to read: see
// agentfile.Hooks.
func TestHooksAreOfTheFileAndNoSetting(t *testing.T) {
	user := filepath.Join(t.TempDir(), "user.yaml")
	writeFile(t, user, "hooks:\n  Stop: [{hooks: [{command: make test}]}]\nmodel: a/b\n")
	got, err := Load(SettingSources{User: user, Getenv: func(k string) string { return map[string]string{"TROUPE_HOOKS": "x"}[k] }})
	if err != nil || len(got) != 1 || got["model"].Value != "a/b" {
		t.Errorf("%+v, %v", got, err)
	}
}
