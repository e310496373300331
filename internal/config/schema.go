package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/safefile"
	"github.com/troupe-run/troupe/internal/throttle"
)

// settingMeanings says what each setting does.
var settingMeanings = map[string]string{
	"model":                "model of a run that names none, PROVIDER/MODEL",
	"store_dir":            "state directory",
	"log_store":            "log store for a new state directory: local (the default) or jetstream",
	"color":                "auto, always or never",
	"otlp_endpoint":        "OTLP/HTTP receiver of the spans of your nodes, such as http://localhost:4318",
	"telemetry_content":    "none (the default) or full: whether spans have the texts of people, models and tools",
	"events_content":       "none or full: whether observers of your nodes receive events with the texts of people, models and tools; full on a server of its own and none on a server that nodes share by default",
	"output":               "output of commands that can write it: table, json, jsonl, yaml, text, stream-json",
	"max_turns":            "most turns of the root agent; 0 is the default",
	"max_tokens":           "most tokens of the whole tree; 0 is the default",
	"max_tool_calls":       "most tool calls of the whole tree; 0 is the default",
	"max_depth":            "how deep agents may delegate; 0 is the default",
	"max_children":         "most live children of one agent; 0 is the default",
	"max_messages":         "most messages between the agents of a run; 0 is the default",
	"max_agents":           "most agents of the whole tree; 0 is the default",
	"max_backlog":          "most tasks that the shared backlog of a run may ever have; 0 is the default",
	"backlog_lease":        "how long a claim of a task of the shared backlog lasts after the last message of its agent, such as 10m; 0 is the default",
	"max_budget_usd":       "most US dollars of the whole tree; 0 is the default",
	"allow_unbounded":      "models that may receive attachments although their maximum cost is not published",
	"allow_unpriced":       "models that may be called under max_budget_usd although their price is unknown",
	"pricing_file":         "prices and context windows of models, in the form of models.dev or LiteLLM; takes precedence over the built-in list",
	"timeout":              "working time after which an agent must summarize and end, such as 90s or 15m",
	"log_patience":         "how long troupe run waits for a log that cannot be written, such as 2m",
	"max_live_runs":        "maximum live runs on a node of yours; later ones are queued; 0 is the default",
	"retain_age":           "how long a run stays after its end, such as 36h, 30d or 8w; off: keep forever. 30d by default",
	"retain_size":          "total size of logs and blobs before the oldest runs are removed, such as 500MiB; off: unlimited. 2GiB by default",
	"guardrails":           "ready guardrails of all agents: secrets, injection, size, patterns",
	"hooks":                "commands that run at hook points of the loop",
	"priority":             "priority among runs that wait for a throttled model: high, normal (the default) or low",
	"fallback":             "models that are tried in order when the first fails for good",
	"fail_if":              "sentences: if one of them holds, the run has failed",
	"json_schema":          "file with the JSON Schema that an answer must meet",
	"use_tokens":           "output tokens for the root agent to use up; it may stop at 90 %, or when continuing brings little",
	"require":              "what an answer needs: results of tools, and a JSON Schema",
	"constraints":          "sentences that bind all agents of a run, such as \"Change no file outside of docs.\"",
	"criteria":             "sentences: the run is a success if they hold",
	"continue":             "output tokens that the agent is told to use up before its answer is accepted",
	"watch":                "loop detection: how many repeats count as a loop (docs/loop-options.md)",
	"breaker":              "how many failures of a tool on one target, or forbidden calls, in a row make the loop ask a person",
	"context":              "how the prompt is kept within the context window of the model",
	"polling":              "tools that may be repeated without counting as a loop",
	"max_agent_tokens":     "most tokens of one agent; 0 is the default",
	"max_agent_budget_usd": "most US dollars of one agent; 0 is the default",
	"patience":             "how long an agent waits for a model that throttles all callers, such as 10m",
	"limit_notes":          "when the model is told that a limit is near, in percent of the limit",
	"tool_retries":         "how often a call is retried after a temporary failure",
	"tools":                "per tool: effect class, polling, what it does with data, and for shell the allowed and denied commands and the sandbox (docs/sandbox.md)",
	"delegate_charges":     "US dollars that are charged for each delegation to an agent of another program, by name or pattern (docs/agentprotocol.md)",
	"a2a_agents":           "agents of other programs that are called by A2A: their addresses, and the variables with their tokens (docs/a2a.md)",
	"policy":               "file with the stop-veto policy",
	"permissions":          "rules that allow, ask or deny calls, how many people must approve what is asked about, and what holds for calls that send data out once text from outside was read (docs/taint.md)",
	"permission_mode":      "what happens to calls that no rule matches: default, acceptEdits, plan, dontAsk or bypassPermissions",
	"unattended":           "true for unattended runs: calls that need an approval are denied, and an agent that cannot continue without a person ends",
	"question_timeout":     "how long a question to a person stays open before it counts as denied, such as 1h; 0: as long as the run may be parked",
	"reconcile_every":      "how often a node of yours looks for unfinished runs that no node owns, such as 5m; 0 is the default",
	"park_timeout":         "how long a run may wait for people alone before it ends as unanswered, such as 48h; 0 is the default",
	"requests_per_minute":  "most requests a minute to each model of a provider, or to one model: openai=500,openai/gpt-6-sol=60; of all nodes together",
	"tokens_per_minute":    "most tokens a minute of prompts and replies, in the form of requests_per_minute",
}

// settingNotes says what holds for a setting in files, and not for its variable.
var settingNotes = map[string]string{
	"store_dir":            "Relative to the settings file. Only in your own file.",
	"log_store":            "Only in your own file.",
	"otlp_endpoint":        "Only in your own file.",
	"telemetry_content":    "Only in your own file.",
	"events_content":       "Only in your own file.",
	"max_budget_usd":       "The file of a directory can only lower it.",
	"max_agent_budget_usd": "The file of a directory can only lower it.",
	"allow_unbounded":      "Only in your own file.",
	"allow_unpriced":       "Only in your own file.",
	"pricing_file":         "Relative to the settings file. Only in your own file.",
	"max_live_runs":        "Only in your own file.",
	"retain_age":           "Only in your own file.",
	"retain_size":          "Only in your own file.",
	"guardrails":           "Those of all files and of the flag add up.",
	"constraints":          "Those of all files, of the variable and of the flag add up.",
	"criteria":             "Those of all files, of the variable and of the flag add up.",
	"fail_if":              "Those of all files, of the variable and of the flag add up.",
	"hooks":                "Only in your own file.",
	"delegate_charges":     "Only in your own file.",
	"a2a_agents":           "Only in your own file.",
	"json_schema":          "Relative to the settings file.",
	"policy":               "A settings file may also have the rules themselves. The file of a directory can only add rules to yours.",
	"permissions":          "The file of a directory can only ask, deny, raise approvals, and set taint to ask or deny.",
	"permission_mode":      "The file of a directory can only restrict it.",
	"reconcile_every":      "Only in your own file.",
	"priority":             "The file of a directory can only lower it.",
	"unattended":           "The file of a directory can only set true.",
	"requests_per_minute":  "The file of a directory can only lower it.",
	"tokens_per_minute":    "The file of a directory can only lower it.",
}

// describeSetting returns the description of a setting in a file.
func describeSetting(key string) string {
	if note := settingNotes[key]; note != "" {
		return settingMeanings[key] + ". " + note
	}
	return settingMeanings[key]
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
		Description: "Settings of troupe. Precedence: flag, environment variable TROUPE_*, the directory's " + FileName + ", your " + FileName + ", default.",
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
		p.Description = describeSetting(key)
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
	case tokensKind:
		return anyOf(wholeKind.jsonSchema(), &jsonschema.Schema{Type: "string", Pattern: `^[0-9]+(\.[0-9]+)?[kKmM]$`})
	case numberKind:
		return anyOf(&jsonschema.Schema{Type: "number", Minimum: jsonschema.Ptr(0.0)}, &jsonschema.Schema{Type: "string", Pattern: `^\$[0-9]+(\.[0-9]+)?$`})
	case boolKind:
		return &jsonschema.Schema{Type: "boolean"}
	case durationKind:
		return &jsonschema.Schema{Type: "string", Pattern: durationForm}
	case priorityKind:
		return &jsonschema.Schema{Enum: []any{throttle.PriorityHigh, throttle.PriorityNormal, throttle.PriorityLow}}
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
	switch key { // each schema is used in one place, so schemas are not shared
	case "watch":
		return orOff(countsSchema("of", "identical", "pattern", "stuck", "apart"))
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
	case "require":
		evidence := anyOf(textKind.jsonSchema(), objectSchema(map[string]*jsonschema.Schema{"tool": textKind.jsonSchema(), "contains": textKind.jsonSchema()}))
		return objectSchema(map[string]*jsonschema.Schema{"evidence": listOf(evidence), "schema": anyOf(textKind.jsonSchema(), &jsonschema.Schema{Type: "object"}),
			"tries": wholeKind.jsonSchema()})
	case "permissions":
		return objectSchema(map[string]*jsonschema.Schema{"allow": listKind.jsonSchema(), "ask": listKind.jsonSchema(), "deny": listKind.jsonSchema(), "approvals": {Enum: []any{1, 2}},
			"allow_tainted": listKind.jsonSchema(), "taint": {Enum: []any{"ask", "deny", "off"}}, "taint_files": {Type: "boolean"}})
	case "guardrails":
		word := func(words ...any) *jsonschema.Schema { return &jsonschema.Schema{Enum: words} }
		return anyOf(textKind.jsonSchema(), listOf(anyOf(textKind.jsonSchema(), objectSchema(map[string]*jsonschema.Schema{
			"guardrail": word("secrets", "injection", "size", "patterns"), "action": word("warn", "block", "end"),
			"severity": word("low", "medium", "high", "critical"), "at": listOf(word("input", "output", "tool_result")), "tools": textKind.jsonSchema(),
			"label": textKind.jsonSchema(), "pattern": textKind.jsonSchema(), "bytes": wholeKind.jsonSchema()}))))
	case "delegate_charges":
		return &jsonschema.Schema{Type: "object", AdditionalProperties: &jsonschema.Schema{Type: "number", Minimum: jsonschema.Ptr(0.0)}}
	case "a2a_agents":
		agent := objectSchema(map[string]*jsonschema.Schema{"url": textKind.jsonSchema(), "endpoint": textKind.jsonSchema(), "token_env": textKind.jsonSchema(), "token_header": textKind.jsonSchema()})
		agent.Required = []string{"url"}
		return &jsonschema.Schema{Type: "object", AdditionalProperties: agent}
	case "tools":
		return &jsonschema.Schema{Type: "object", AdditionalProperties: objectSchema(map[string]*jsonschema.Schema{
			"class": {Enum: []any{"read", "idempotent", "effect", "irreversible"}}, "poll": {Type: "boolean"}, "data": listKind.jsonSchema(),
			"allow": listKind.jsonSchema(), "deny": listKind.jsonSchema(), "private": listKind.jsonSchema(), "git": {Type: "boolean"}, "read": listKind.jsonSchema(), "timeout": durationKind.jsonSchema()})}
	}
	return &jsonschema.Schema{Types: []string{"object", "array"}}
}

// ValidateFile reads one file as Load would and reports everything that is wrong
// with it, in the order of its lines. checkModel returns what a run says about the name of a model.
func ValidateFile(file string, checkModel func(name string) error) (problems []error) {
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
			err = errors.Join(s.checkInFile(file), s.checkModels(checkModel))
		}
		if err != nil {
			problems = append(problems, err)
		}
	}
	return problems
}

// SchemaJSON returns SettingsSchema as indented JSON.
func SchemaJSON() ([]byte, error) {
	raw, err := json.MarshalIndent(SettingsSchema(), "", "  ")
	if err != nil {
		return nil, fmt.Errorf("%w schema: %w", ErrSetting, err)
	}
	return append(raw, '\n'), nil
}
