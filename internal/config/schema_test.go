package config

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"
)

// validateBySchema says whether the schema takes the document of a file.
func validateBySchema(t *testing.T, text string) error {
	t.Helper()
	s, err := SettingsSchema().Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	var doc any
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return err
	}
	raw, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	var instance any
	if err := json.Unmarshal(raw, &instance); err != nil {
		t.Fatal(err)
	}
	return s.Validate(instance)
}

// The schema and Validate say the same of a file, whatever is wrong with it.
func TestSchemaAgreesWithValidate(t *testing.T) {
	for text, good := range map[string]bool{
		"model: a/b\nmax_turns: 3\ncolor: never\n": true,
		"timeout: 90s\n": true,
		"timeout: 1h30m\nmax_budget_usd: 0.5\njson_schema: a.json\n": true,
		"timeout: soon\n":         false,
		"timeout: 90\n":           false,
		"max_turns: -1\n":         false,
		"max_turns: 1.5\n":        false,
		"max_turns: many\n":       false,
		"max_budget_usd: -0.5\n":  false,
		"max_budget_usd: cheap\n": false,
		"max_turn: 3\n":           false,
		"model: [a]\n":            false,
		"model: {a: b}\n":         false,
		"- model\n":               false,
		"fallback: [a/b, c/d]\n":  true,
		"fallback: a/b,c/d\n":     true,
		"criteria: [One., Two.]\nconstraints: One.\n": true,
		"criteria: {evidence: [grep]}\n":              false,
		"fallback: [[a]]\n":                           false,
		"fallback: {a: b}\n":                          false,
		"use_tokens: -3\n":                            false,
		"hooks:\n  pre_tool: [{name: a, command: 'true'}]\nmax_tokens: 100\n": true,
	} {
		file := filepath.Join(t.TempDir(), FileName)
		writeFile(t, file, text)
		problems := ValidateFile(file, anyModel)
		if (len(problems) == 0) != good {
			t.Errorf("%q: %v", text, problems)
		}
		if err := validateBySchema(t, text); (err == nil) != good {
			t.Errorf("%q: the schema says %v", text, err)
		}
	}
}

// Every setting has an entry in the schema, with a description.
func TestTheSchemaHasAllSettings(t *testing.T) {
	s := SettingsSchema()
	for key := range settingKinds {
		if p := s.Properties[key]; p == nil || p.Description == "" {
			t.Errorf("%s: %+v", key, p)
		}
	}
	if len(s.Properties) != len(settingKinds) || len(s.PropertyOrder) != len(settingKinds) {
		t.Errorf("%d properties for %d settings", len(s.Properties), len(settingKinds))
	}
	raw, err := SchemaJSON()
	var again jsonschema.Schema
	if err != nil || json.Unmarshal(raw, &again) != nil || again.Title != FileName {
		t.Errorf("%v %s", err, raw)
	}
}

// The first problem does not hide the others.
func TestValidateFindsAll(t *testing.T) {
	file := filepath.Join(t.TempDir(), FileName)
	writeFile(t, file, "max_turn: 3\nmodel: a/b\ntimeout: soon\nmodel: c/d\nmax_tokens: [1]\n")
	problems := ValidateFile(file, anyModel)
	want := []string{`:1: unknown key "max_turn"; did you mean max_turns?`, `:3: timeout: "soon"`, `:4: model is set twice`, `:5: max_tokens: expected one value`}
	if len(problems) != len(want) {
		t.Fatal(problems)
	}
	for i, p := range problems {
		if !errors.Is(p, ErrSetting) || !strings.Contains(p.Error(), want[i]) {
			t.Errorf("%v, want %s", p, want[i])
		}
	}
	if problems := ValidateFile(filepath.Join(t.TempDir(), "none"), anyModel); len(problems) != 1 {
		t.Error(problems)
	}
}
