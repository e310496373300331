package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/troupe-run/troupe/internal/config"
)

// What docs/loop-options.md shows as settings, the schema and the readers take; what
// the schema refuses, they refuse.
func TestSettingsSchemaMatchesTheReaders(t *testing.T) {
	raw, err := os.ReadFile("../../../docs/loop-options.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(raw), "```yaml\n")
	shown, _, _ := strings.Cut(rest, "```")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "finding.schema.json"), []byte(`{"type":"object","required":["a"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	schema, err := config.SettingsSchema().Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	for text, good := range map[string]bool{
		shown: true, "watch: off\nbreaker: {failures: 0}\ncontinue: 5000\ntool_retries: off\npolling: check\n": true,
		"watch: {of: often}\n": false, "watch: {off: 3}\n": false, "breaker: 3\n": false, "tool_retries: many\n": false,
		"context: {percent: -1}\n": false, "tools: {shell: {class: harmless}}\n": false, "tools: [shell]\n": false,
		"require: {evidence: grep}\n": false, "require: {proof: [grep]}\n": false, "hooks: 3\n": false, "continue: {tokens: lots}\n": false,
	} {
		file := filepath.Join(dir, "troupe.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var doc any
		if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
			t.Fatal(err)
		}
		problems, _ := fileProblems(file)
		if (len(problems) == 0) != good {
			t.Errorf("%q: %v", text, problems)
		}
		if err := schema.Validate(doc); (err == nil) != good {
			t.Errorf("%q: the schema says %v", text, err)
		}
	}
}
