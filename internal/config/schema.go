package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/safefile"
	"github.com/troupe-run/troupe/internal/throttle"
)

// settingDescriptions describes the purpose of each setting.
var settingDescriptions = map[string]string{
	"model":               "model of a run that names none, PROVIDER/MODEL",
	"store_dir":           "state directory; relative to this file; only in your own file",
	"log_store":           "where a new state directory keeps its logs: local (the default) or jetstream; only in your own file",
	"color":               "auto, always or never",
	"otlp_endpoint":       "OTLP/HTTP receiver of the spans of your nodes, such as http://localhost:4318; only in your own file",
	"telemetry_content":   "none (the default) or full: whether spans have the texts of people, models and tools; only in your own file",
	"output":              "output of commands that can write it: table, json, jsonl, yaml, text, stream-json",
	"max_turns":           "most turns of the first agent; 0 is the default",
	"max_tokens":          "most tokens of the whole tree; 0 is the default",
	"max_tool_calls":      "most tool calls of the whole tree; 0 is the default",
	"max_depth":           "how deep agents may delegate; 0 is the default",
	"max_children":        "most live children of one agent; 0 is the default",
	"max_messages":        "most messages between the agents of a run; 0 is the default",
	"max_agents":          "most agents of the whole tree; 0 is the default",
	"max_budget_usd":      "most US dollars of the whole tree; 0 is the default. The file of a directory can only lower it",
	"allow_unbounded":     "models that may receive attachments although their maximum cost is not published; only in the user's own file",
	"allow_unpriced":      "models that may be called under max_budget_usd though their price is unknown; only in your own file",
	"pricing_file":        "prices and windows of models that go before those listed, in the form of models.dev or LiteLLM; relative to this file; only in your own file",
	"timeout":             "time at work after which an agent sums up, such as 90s or 15m",
	"log_patience":        "how long troupe run waits for a log that cannot be written, such as 2m",
	"max_live_runs":       "most runs that are live on a node of yours at once; later ones are queued; 0 is the default; only in your own file",
	"retain_age":          "how long a run stays after its end, such as 36h, 30d or 8w; off: for ever. 30d by default; only in your own file",
	"retain_size":         "how much logs and blobs may hold until the oldest runs go, such as 500MiB; off: there is no such limit. 2GiB by default; only in your own file",
	"requests_per_minute": "most requests a minute to each model of a provider, or to one model: openai=500,openai/gpt-6-sol=60; of all nodes together. The file of a directory can only lower it",
	"tokens_per_minute":   "most tokens a minute of prompts and replies, in the form of requests_per_minute. The file of a directory can only lower it",
	"guardrails":          "ready guardrails of all agents: secrets, injection, size, patterns; those of all files and of the flag add up",
	"hooks":               "commands that run at hook points of the loop; only in the user's own file",
	"fallback":            "models that are tried in order when the first fails for good",
	"fail_if":             "sentences: if one of them holds, the run has failed",
	"json_schema":         "file with the JSON Schema that an answer must meet; relative to this file",
	"use_tokens":          "output tokens that a run must use",
	"require":             "evidence that a claimed completion must have",
	"criteria":            "sentences that say what the answer must have",
	"continue":            "how a run continues until it has used its tokens",
	"watch":               "when the loop finds that it goes in circles",
	"breaker":             "how many failures or forbidden proposals in a row escalate",
	"context":             "how the prompt is kept within the window of the model",
	"polling":             "tools that are made to be called again and again",
	"max_agent_tokens":    "most tokens of one agent; 0 is the default",
	"patience":            "how long an agent waits for a model that throttles all callers, such as 10m",
	"limit_notes":         "when the model is told that a limit is near, in percent of the limit",
	"tool_retries":        "how often a call is retried after a temporary failure",
	"tools":               "effect classes of tools",
	"policy":              "stop-veto policy: a file, or in troupe.yaml its rules; the file of a directory can only add rules to the user's",
	"permissions":         "rules that allow, ask or deny calls; the file of a directory can only ask and deny",
	"permission_mode":     "what happens to calls that no rule fits: default, acceptEdits, plan, dontAsk or bypassPermissions. The file of a directory can only take trust away",
	"question_timeout":    "how long a question to a person stays open before it counts as denied, such as 1h; 0 is for ever",
	"reconcile_every":     "how often a node of yours looks for unfinished runs that no node owns, such as 5m; 0 is the default; only in your own file",
	"park_timeout":        "how long a run may wait for people alone before it ends as unanswered, such as 48h; 0 is the default",
}

// SettingKeys are the names of the settings that are values, in order.
func SettingKeys() []string {
	var names []string
	for key, form := range settingKinds {
		if form != treeKind {
			names = append(names, key)
		}
	}
	slices.Sort(names)
	return names
}

// SettingsSchema is the JSON Schema of a troupe.yaml, made from the settings.
func SettingsSchema() *jsonschema.Schema {
	s := &jsonschema.Schema{Schema: "https://json-schema.org/draft/2020-12/schema", Title: FileName, Type: "object",
		Description: "Settings of troupe. A flag goes before an environment variable TROUPE_*, that before " + FileName + " of the directory, that before the user's.",
		// No other keys are allowed.
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
		Properties:           map[string]*jsonschema.Schema{}, PropertyOrder: slices.Sorted(maps.Keys(settingKinds))}
	for key, form := range settingKinds {
		p := form.jsonSchema()
		if form == treeKind {
			p = treeSchema(key)
		}
		if form == policyKind {
			p = anyOf(textKind.jsonSchema(), &jsonschema.Schema{Types: []string{"object", "array"}})
		}
		p.Description = settingDescriptions[key]
		s.Properties[key] = p
	}
	return s
}

// durationForm matches what time.ParseDuration accepts, without a sign.
const durationForm = `^([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))*$|^0$`

// jsonSchema returns the schema of values of a kind.
func (k valueKind) jsonSchema() *jsonschema.Schema {
	switch k {
	case wholeKind:
		return &jsonschema.Schema{Type: "integer", Minimum: jsonschema.Ptr(0.0)}
	case limitKind:
		return &jsonschema.Schema{Type: "integer", Minimum: jsonschema.Ptr(float64(spec.Off))}
	case ageKind:
		return &jsonschema.Schema{Type: "string", Pattern: `^([1-9][0-9]*[dw]|off)$|` + durationForm}
	case sizeKind:
		return anyOf(wholeKind.jsonSchema(), &jsonschema.Schema{Type: "string", Pattern: `^([0-9]+(\.[0-9]*)?([KMGT]i?B|B)?|off)$`})
	case numberKind:
		return &jsonschema.Schema{Type: "number", Minimum: jsonschema.Ptr(0.0)}
	case durationKind:
		return &jsonschema.Schema{Type: "string", Pattern: durationForm}
	case rateKind:
		return anyOf(&jsonschema.Schema{Type: "object", AdditionalProperties: &jsonschema.Schema{Type: "integer", Minimum: jsonschema.Ptr(1.0), Maximum: jsonschema.Ptr(float64(throttle.RateMax))}},
			listOf(&jsonschema.Schema{Type: "string"}), &jsonschema.Schema{Type: "string"})
	case linesKind:
		return anyOf(listOf(&jsonschema.Schema{Type: "string"}), &jsonschema.Schema{Type: "string"})
	case listKind:
		return anyOf(listOf(&jsonschema.Schema{Type: "string", Pattern: "^[^,]*$"}), &jsonschema.Schema{Type: "string"})
	}
	return &jsonschema.Schema{Type: "string"}
}

func anyOf(s ...*jsonschema.Schema) *jsonschema.Schema { return &jsonschema.Schema{AnyOf: s} }

func listOf(s *jsonschema.Schema) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "array", Items: s}
}

// objectSchema has these properties and no others.
func objectSchema(properties map[string]*jsonschema.Schema) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "object", Properties: properties, AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}}
}

// countsSchema is an object of whole numbers.
func countsSchema(names ...string) *jsonschema.Schema {
	properties := map[string]*jsonschema.Schema{}
	for _, n := range names {
		properties[n] = wholeKind.jsonSchema()
	}
	return objectSchema(properties)
}

// orOff lets a setting be switched off.
func orOff(s ...*jsonschema.Schema) *jsonschema.Schema {
	return anyOf(append(s, &jsonschema.Schema{Const: jsonschema.Ptr[any]("off")}, &jsonschema.Schema{Const: jsonschema.Ptr[any](false)})...)
}

// treeSchema returns the schema of settings that other packages read (docs/loop-options.md,
// docs/hooks.md); only those packages can check what the numbers and names mean together.
func treeSchema(key string) *jsonschema.Schema {
	switch key { // each schema is used in one place, so none is shared
	case "watch":
		return orOff(countsSchema("of", "identical", "pattern", "stuck"))
	case "breaker":
		return orOff(countsSchema("failures", "forbidden"))
	case "continue":
		return orOff(wholeKind.jsonSchema(), countsSchema("tokens", "percent", "small", "rounds"))
	case "tool_retries":
		return orOff(wholeKind.jsonSchema())
	case "patience":
		return orOff(durationKind.jsonSchema())
	case "limit_notes":
		return orOff(countsSchema("near", "last"))
	case "context":
		c := countsSchema("percent", "tail", "prune_tail", "within", "summary_tokens")
		c.Properties["model"] = textKind.jsonSchema()
		return orOff(c)
	case "polling":
		return anyOf(listOf(textKind.jsonSchema()), textKind.jsonSchema())
	case "require", "criteria":
		evidence := anyOf(textKind.jsonSchema(), objectSchema(map[string]*jsonschema.Schema{"tool": textKind.jsonSchema(), "contains": textKind.jsonSchema()}))
		return objectSchema(map[string]*jsonschema.Schema{"evidence": listOf(evidence), "schema": anyOf(textKind.jsonSchema(), &jsonschema.Schema{Type: "object"}),
			"tries": wholeKind.jsonSchema()})
	case "permissions":
		return objectSchema(map[string]*jsonschema.Schema{"allow": listKind.jsonSchema(), "ask": listKind.jsonSchema(), "deny": listKind.jsonSchema()})
	case "guardrails":
		word := func(words ...any) *jsonschema.Schema { return &jsonschema.Schema{Enum: words} }
		return anyOf(textKind.jsonSchema(), listOf(anyOf(textKind.jsonSchema(), objectSchema(map[string]*jsonschema.Schema{
			"guardrail": word("secrets", "injection", "size", "patterns"), "action": word("warn", "block", "end"),
			"severity": word("low", "medium", "high", "critical"), "at": listOf(word("input", "output", "tool_result")), "tools": textKind.jsonSchema(),
			"label": textKind.jsonSchema(), "pattern": textKind.jsonSchema(), "bytes": wholeKind.jsonSchema()}))))
	case "tools":
		return &jsonschema.Schema{Type: "object", AdditionalProperties: objectSchema(map[string]*jsonschema.Schema{
			"class": {Enum: []any{"read", "idempotent", "effect", "irreversible"}}, "poll": {Type: "boolean"},
			"allow": listKind.jsonSchema(), "deny": listKind.jsonSchema(), "private": listKind.jsonSchema(), "git": {Type: "boolean"}, "read": listKind.jsonSchema(), "timeout": durationKind.jsonSchema()})}
	}
	return &jsonschema.Schema{Types: []string{"object", "array"}}
}

// ValidateFile reads one file as Load would and reports everything that is wrong
// with it, in the order of its lines.
func ValidateFile(file string) (problems []error) {
	data, err := safefile.Read(file, FileBytesMax)
	if err != nil {
		return []error{fmt.Errorf("%w file %w", ErrSetting, err)}
	}
	n, err := parseFile(file, data, nil)
	switch {
	case err != nil:
		return []error{err}
	case n == nil:
		return nil
	}
	for s, err := range eachSetting(file, n) {
		if err == nil {
			err = s.checkInFile(file)
		}
		if err != nil {
			problems = append(problems, err)
		}
	}
	return problems
}

// SchemaJSON is Schema as a document.
func SchemaJSON() ([]byte, error) {
	raw, err := json.MarshalIndent(SettingsSchema(), "", "  ")
	if err != nil {
		return nil, fmt.Errorf("%w schema: %w", ErrSetting, err)
	}
	return append(raw, '\n'), nil
}
