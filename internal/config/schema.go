package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"

	"github.com/troupe-run/troupe/internal/safefile"
)

// about describes the purpose of each setting.
var about = map[string]string{
	"model":            "model of a run that names none, PROVIDER/MODEL",
	"store_dir":        "state directory; relative to this file; only in your own file",
	"color":            "auto, always or never",
	"output":           "output of commands that can write it: table, json, jsonl, yaml, text, stream-json",
	"max_turns":        "most turns of the first agent; 0 is the default",
	"max_tokens":       "most tokens of the whole tree; 0 is the default",
	"max_tool_calls":   "most tool calls of the whole tree; 0 is the default",
	"max_depth":        "how deep agents may delegate; 0 is the default",
	"max_children":     "most live children of one agent; 0 is the default",
	"max_messages":     "most messages between the agents of a run; 0 is the default",
	"max_agents":       "most agents of the whole tree; 0 is the default",
	"max_budget_usd":   "most US dollars of the whole tree; 0 is the default. The file of a directory can only lower it",
	"allow_unbounded":  "models that may be sent attachments though nobody has published what those cost at most; only in your own file",
	"allow_unpriced":   "models that may be called under max_budget_usd though their price is unknown; only in your own file",
	"pricing_file":     "prices and windows of models that go before those listed, in the form of models.dev or LiteLLM; relative to this file; only in your own file",
	"timeout":          "time at work after which an agent sums up, such as 90s or 15m",
	"journal_patience": "how long troupe run waits for a log that cannot be written, such as 2m",
	"max_live_runs":    "most runs that are live on a node of yours at once; later ones are queued; 0 is the default; only in your own file",
	"hooks":            "commands that are asked or told at their points of the loop, in one's own file",
	"fallback":         "models that are tried in order when the first fails for good",
	"json_schema":      "file with the JSON Schema that an answer must meet; relative to this file",
	"use_tokens":       "output tokens that a run goes on to use",
	"require":          "evidence that a claimed completion must have",
	"criteria":         "sentences that say what the answer must have",
	"continue":         "how a run goes on that is to use up tokens",
	"watch":            "when the loop finds that it goes in circles",
	"breaker":          "how many failures or forbidden proposals in a row escalate",
	"context":          "how the prompt is kept within the window of the model",
	"polling":          "tools that are made to be called again and again",
	"tool_retries":     "how often a call is tried again after a failure that may pass",
	"tools":            "effect classes of tools",
}

// Keys are the names of the settings that are values, in order.
func Keys() []string {
	var names []string
	for key, form := range keys {
		if form != tree {
			names = append(names, key)
		}
	}
	slices.Sort(names)
	return names
}

// Schema is the JSON Schema of a troupe.yaml, made from the settings.
func Schema() *jsonschema.Schema {
	s := &jsonschema.Schema{Schema: "https://json-schema.org/draft/2020-12/schema", Title: FileName, Type: "object",
		Description: "Settings of troupe. A flag goes before an environment variable TROUPE_*, that before " + FileName + " of the directory, that before the user's.",
		// No other keys are allowed.
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
		Properties:           map[string]*jsonschema.Schema{}, PropertyOrder: slices.Sorted(maps.Keys(keys))}
	for key, form := range keys {
		p := form.schema()
		if form == tree {
			p = treeSchema(key)
		}
		p.Description = about[key]
		s.Properties[key] = p
	}
	return s
}

// durationForm matches what time.ParseDuration accepts, without a sign.
const durationForm = `^([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))*$|^0$`

// schema returns the schema of values of a kind.
func (k kind) schema() *jsonschema.Schema {
	switch k {
	case whole:
		return &jsonschema.Schema{Type: "integer", Minimum: jsonschema.Ptr(0.0)}
	case number:
		return &jsonschema.Schema{Type: "number", Minimum: jsonschema.Ptr(0.0)}
	case duration:
		return &jsonschema.Schema{Type: "string", Pattern: durationForm}
	case list:
		return anyOf(listOf(&jsonschema.Schema{Type: "string", Pattern: "^[^,]*$"}), &jsonschema.Schema{Type: "string"})
	}
	return &jsonschema.Schema{Type: "string"}
}

func anyOf(s ...*jsonschema.Schema) *jsonschema.Schema { return &jsonschema.Schema{AnyOf: s} }

func listOf(s *jsonschema.Schema) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "array", Items: s}
}

// object has these properties and no others.
func object(properties map[string]*jsonschema.Schema) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "object", Properties: properties, AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}}
}

// counts is an object of whole numbers.
func counts(names ...string) *jsonschema.Schema {
	properties := map[string]*jsonschema.Schema{}
	for _, n := range names {
		properties[n] = whole.schema()
	}
	return object(properties)
}

// orOff lets a setting be switched off.
func orOff(s ...*jsonschema.Schema) *jsonschema.Schema {
	return anyOf(append(s, &jsonschema.Schema{Const: jsonschema.Ptr[any]("off")}, &jsonschema.Schema{Const: jsonschema.Ptr[any](false)})...)
}

// treeSchema returns the schema of settings that other packages read (docs/manners.md,
// docs/hooks.md); only those packages can check what the numbers and names mean together.
func treeSchema(key string) *jsonschema.Schema {
	switch key { // each schema is used in one place, so none is shared
	case "watch":
		return orOff(counts("of", "identical", "pattern", "stuck"))
	case "breaker":
		return orOff(counts("failures", "forbidden"))
	case "continue":
		return orOff(whole.schema(), counts("tokens", "percent", "small", "rounds"))
	case "tool_retries":
		return orOff(whole.schema())
	case "context":
		c := counts("percent", "tail", "prune_tail", "within", "summary_tokens")
		c.Properties["model"] = text.schema()
		return orOff(c)
	case "polling":
		return anyOf(listOf(text.schema()), text.schema())
	case "require", "criteria":
		evidence := anyOf(text.schema(), object(map[string]*jsonschema.Schema{"tool": text.schema(), "contains": text.schema()}))
		return object(map[string]*jsonschema.Schema{"evidence": listOf(evidence), "schema": anyOf(text.schema(), &jsonschema.Schema{Type: "object"}),
			"tries": whole.schema()})
	case "tools":
		return &jsonschema.Schema{Type: "object", AdditionalProperties: object(map[string]*jsonschema.Schema{
			"class": {Enum: []any{"read", "idempotent", "effect", "irreversible"}}, "poll": {Type: "boolean"},
			"allow": list.schema(), "deny": list.schema(), "private": list.schema(), "git": {Type: "boolean"}, "read": list.schema(), "timeout": duration.schema()})}
	}
	return &jsonschema.Schema{Types: []string{"object", "array"}}
}

// Validate reads one file as Load would and reports everything that is wrong
// with it, in the order of its lines.
func Validate(file string) []error {
	if _, err := os.Stat(file); err != nil {
		return []error{fmt.Errorf("%w file %s: %w", ErrSetting, file, err)}
	}
	if _, err := read(file); err == nil {
		return values(file)
	}
	data, err := safefile.Read(file, FileBytesMax)
	var doc yaml.Node
	if err == nil {
		err = yaml.Unmarshal(data, &doc)
	}
	if err != nil || len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		_, err := read(file)
		return []error{err}
	}
	return each(file, doc.Content[0])
}

// values checks every value of a readable file.
func values(file string) (problems []error) {
	found, err := read(file)
	if err != nil {
		return []error{err}
	}
	for _, s := range found {
		if err := s.sound(file); err != nil {
			problems = append(problems, err)
		}
	}
	return problems
}

// each checks every key of a mapping separately, so that the first problem does not hide
// the others.
func each(file string, n *yaml.Node) (problems []error) {
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if seen[key.Value] {
			problems = append(problems, fmt.Errorf("%w %s:%d: %s is set twice", ErrSetting, file, key.Line, key.Value))
			continue
		}
		seen[key.Value] = true
		found, err := mapping(file, &yaml.Node{Kind: yaml.MappingNode, Line: n.Line, Content: n.Content[i : i+2]})
		for _, s := range found {
			if err == nil {
				err = s.sound(file)
			}
		}
		if err != nil {
			problems = append(problems, err)
		}
	}
	return problems
}

// SchemaJSON is Schema as a document.
func SchemaJSON() ([]byte, error) {
	raw, err := json.MarshalIndent(Schema(), "", "  ")
	if err != nil {
		return nil, fmt.Errorf("%w schema: %w", ErrSetting, err)
	}
	return append(raw, '\n'), nil
}
