package cli

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/spf13/pflag"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/config/agentfile"
)

// limitDoors says under which names users set a limit at each door, the usual one first; a text that begins with "-" is
// the reason why there is none.
type limitDoors struct{ flag, setting, file, request string }

// everywhere is a limit of each agent with the same name at all doors.
func everywhere(key string) limitDoors {
	return limitDoors{strings.ReplaceAll(key, "_", "-"), key, "x-troupe.limits." + key, key}
}

const (
	ofTheRun     = "- it limits the whole tree: no agent of it could set it"
	detailOf     = "- a detail of a behaviour that has its door as a whole: settings and agent files"
	ofTheNode    = "- the operator of a node sets it: no run and no agent could"
	nodeHasFlag  = "- troupe-node has the flag: internal/cli/serve tests that"
	ofTheCommand = "- it says how long one command waits for its own node: no run and no agent could"
)

// limitsTable has the doors of each limit, by its field in the Go API.
var limitsTable = map[string]limitDoors{
	"Limits.Turns":      {"max-turns", "max_turns", "maxTurns maxSteps steps", "max_turns"},
	"Limits.Calls":      {"max-agent-tool-calls", "max_agent_tool_calls", "x-troupe.limits.max_tool_calls", "max_agent_tool_calls"},
	"Limits.ReplyCalls": everywhere("max_reply_calls"),
	"Limits.Parallel":   everywhere("max_parallel_tools"),
	"Limits.Children":   {"max-children", "max_children", "x-troupe.limits.max_children", "max_children"},
	"Limits.Malformed":  everywhere("max_malformed"),
	"Limits.Cuts":       everywhere("max_cuts"),
	"Limits.Retries":    everywhere("max_retries"),
	"Limits.Vetoes":     everywhere("max_vetoes"),
	"Limits.Handoffs":   everywhere("max_handoffs"),
	"Limits.Output":     everywhere("max_output_tokens"),
	"Limits.Closing":    everywhere("closing_tokens"),
	"Limits.SoftMS":     {"timeout", "timeout", "x-troupe.timeout", "timeout_ms"},
	"Limits.HardMS":     {"timeout", "timeout", "x-troupe.timeout", "timeout_ms"}, // it follows from the soft limit
	"Limits.Tokens":     {"max-agent-tokens", "max_agent_tokens", "x-troupe.budget.tokens", "max_agent_tokens"},
	"Limits.Nano":       {"max-agent-budget-usd", "max_agent_budget_usd", "x-troupe.budget.usd", "max_agent_budget_usd"},

	"RunLimits.Tokens":   {"max-tokens", "max_tokens", ofTheRun, "max_tokens"},
	"RunLimits.Nano":     {"max-budget-usd", "max_budget_usd", ofTheRun, "max_budget_usd"},
	"RunLimits.Calls":    {"max-tool-calls", "max_tool_calls", ofTheRun, "max_tool_calls"},
	"RunLimits.Depth":    {"max-depth", "max_depth", ofTheRun, "max_depth"},
	"RunLimits.Children": {"max-children", "max_children", "x-troupe.limits.max_children", "max_children"},
	"RunLimits.Agents":   {"max-agents", "max_agents", ofTheRun, "max_agents"},
	"RunLimits.Messages": {"max-messages", "max_messages", ofTheRun, "max_messages"},
	"RunLimits.Backlog":  {"max-backlog", "max_backlog", ofTheRun, "max_backlog"},
	"RunLimits.LeaseMS":  {"backlog-lease", "backlog_lease", ofTheRun, "backlog_lease_ms"},

	"LoopOptions.ToolRetries":       {"tool-retries", "tool_retries", "x-troupe.tool_retries", "tool_retries loop_options.tool_retries"},
	"LoopOptions.PatienceMS":        {"patience", "patience", "x-troupe.patience", "patience_ms loop_options.patience_ms"},
	"LoopOptions.QuestionMS":        {"question-timeout", "question_timeout", "x-troupe.question_timeout", "question_timeout_ms loop_options.question_timeout_ms"},
	"LoopOptions.LimitNotes.Near":   {detailOf, "limit_notes.near", "x-troupe.limit_notes.near", "loop_options.limit_notes.near"},
	"LoopOptions.LimitNotes.Last":   {detailOf, "limit_notes.last", "x-troupe.limit_notes.last", "loop_options.limit_notes.last"},
	"LoopOptions.Context.Percent":   {detailOf, "context.percent", "x-troupe.context.percent", "loop_options.context.percent"},
	"LoopOptions.Context.Tail":      {detailOf, "context.tail", "x-troupe.context.tail", "loop_options.context.tail"},
	"LoopOptions.Context.PruneTail": {detailOf, "context.prune_tail", "x-troupe.context.prune_tail", "loop_options.context.prune_tail"},
	"LoopOptions.Context.Within":    {detailOf, "context.within", "x-troupe.context.within", "loop_options.context.within"},
	"LoopOptions.Context.Summary":   {detailOf, "context.summary_tokens", "x-troupe.context.summary_tokens", "loop_options.context.summary_tokens"},
	"LoopOptions.Watch.Of":          {detailOf, "watch.of", "x-troupe.watch.of", "loop_options.watch.of"},
	"LoopOptions.Watch.Identical":   {detailOf, "watch.identical", "x-troupe.watch.identical", "loop_options.watch.identical"},
	"LoopOptions.Watch.Pattern":     {detailOf, "watch.pattern", "x-troupe.watch.pattern", "loop_options.watch.pattern"},
	"LoopOptions.Watch.Apart":       {detailOf, "watch.apart", "x-troupe.watch.apart", "loop_options.watch.apart"},
	"LoopOptions.Watch.Stuck":       {detailOf, "watch.stuck", "x-troupe.watch.stuck", "loop_options.watch.stuck"},
	"LoopOptions.Breaker.Failures":  {detailOf, "breaker.failures", "x-troupe.breaker.failures", "loop_options.breaker.failures"},
	"LoopOptions.Breaker.Forbidden": {detailOf, "breaker.forbidden", "x-troupe.breaker.forbidden", "loop_options.breaker.forbidden"},
	"LoopOptions.Require.Tries":     {detailOf, "require.tries", "x-troupe.require.tries", "loop_options.require.tries"},
	"LoopOptions.Continue.Tokens":   {"use-tokens", "use_tokens continue continue.tokens", "x-troupe.continue.tokens x-troupe.continue", "use_tokens loop_options.continue.tokens"},
	"LoopOptions.Continue.Percent":  {detailOf, "continue.percent", "x-troupe.continue.percent", "loop_options.continue.percent"},
	"LoopOptions.Continue.Small":    {detailOf, "continue.small", "x-troupe.continue.small", "loop_options.continue.small"},
	"LoopOptions.Continue.Rounds":   {detailOf, "continue.rounds", "x-troupe.continue.rounds", "loop_options.continue.rounds"},

	"a part of the run's budget":    {"- of all agents alike a part would say nothing: it is of one agent", "- as the flag", "x-troupe.budget.share", "- as the flag"},
	"the wait of a run for people":  {"park-timeout", "park_timeout", "x-troupe.park_timeout", "park_timeout_ms"},
	"the time of a tool's call":     {"- it belongs to one tool: settings and agent files name that", "tools.*.timeout", "x-troupe.tools.timeout", "- a request brings no tools"},
	"the time of a hook":            {"- it belongs to one hook: settings and agent files have hooks", "- in hooks, whose keys docs/hooks.md has", "x-troupe.hooks.timeout hooks.Stop.hooks.timeout", "- a request brings no hooks"},
	"the size of a guarded text":    {"- the flag switches guardrails on: their numbers stand in files", "guardrails.bytes", "x-troupe.guardrails.bytes", "guardrails.bytes"},
	"the patience with a full disk": {"log-patience", "log_patience", ofTheCommand, ofTheCommand},
	"the live runs of a node":       {"max-live-runs", "max_live_runs", ofTheNode, ofTheNode},
	"the age of ended runs":         {nodeHasFlag, "retain_age", ofTheNode, ofTheNode},
	"the size of all runs":          {nodeHasFlag, "retain_size", ofTheNode, ofTheNode},
	"the search for lost runs":      {nodeHasFlag, "reconcile_every", ofTheNode, ofTheNode},
	"the requests a minute":         {nodeHasFlag, "requests_per_minute.*", ofTheNode, ofTheNode},
	"the tokens a minute":           {nodeHasFlag, "tokens_per_minute.*", ofTheNode, ofTheNode},
}

// notLimits are the numbers that limit nothing, or that no user can set, with everything below them.
var notLimits = map[string]string{
	"temperature":                "an option of the model",
	"x-troupe.temperature":       "an option of the model",
	"delegate_charges":           "what agents of other programs are taken to cost",
	"policy":                     "conditions of rules: docs/policy.md",
	"approvals":                  "how many people must approve a call",
	"taint":                      "what holds for calls that send data out",
	"taint-files":                "which text comes from outside",
	"outside":                    "which text comes from outside",
	"x-troupe.permissions":       "how many people must approve a call",
	"attach":                     "the size of what was uploaded",
	"layers":                     "the order of layers",
	"history":                    "the parts of what was uploaded",
	"loop_options.fallbacks":     "models are given by name: the node knows the rest",
	"loop_options.context.model": "models are given by name: the node knows the rest",
	"loop_options.hooks":         "refused in requests",
}

// numberFields are the paths of all numbers of a struct.
func numberFields(t reflect.Type, path string) (list []string) {
	for f := range t.Fields() {
		switch f.Type.Kind() {
		case reflect.Int, reflect.Int64, reflect.Float64: // durations, too
			list = append(list, path+"."+f.Name)
		case reflect.Struct:
			list = append(list, numberFields(f.Type, path+"."+f.Name)...)
		}
	}
	return list
}

// numberJSON are the paths of all numbers of a type by their names in JSON.
func numberJSON(t reflect.Type, path string) (list []string) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return numberJSON(t.Elem(), path)
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint32, reflect.Uint64, reflect.Float64:
		return []string{path}
	case reflect.Struct:
		for f := range t.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.Anonymous || name == "-" {
				name = ""
			}
			if f.Tag.Get("json") != "-" {
				list = append(list, numberJSON(f.Type, joinPath(path, name))...)
			}
		}
	}
	return list
}

// numberSettings are the paths of all numbers and durations of a schema; * stands for any name.
func numberSettings(s *jsonschema.Schema, path string) (list []string) {
	if s == nil {
		return nil
	}
	if s.Type == "integer" || s.Type == "number" || strings.Contains(s.Pattern, "ns|us") {
		list = append(list, path)
	}
	for name, p := range s.Properties {
		list = append(list, numberSettings(p, joinPath(path, name))...)
	}
	for _, p := range s.AnyOf {
		list = append(list, numberSettings(p, path)...)
	}
	return append(append(list, numberSettings(s.Items, path)...), numberSettings(s.AdditionalProperties, joinPath(path, "*"))...)
}

func joinPath(path, name string) string { return strings.Trim(path+"."+name, ".") }

// isNoLimit reports whether a number limits nothing.
func isNoLimit(name string) bool {
	for at, deeper := name, true; deeper; {
		if notLimits[at] != "" {
			return true
		}
		i := strings.LastIndex(at, ".")
		if deeper = i > 0; deeper {
			at = at[:i]
		}
	}
	return false
}

// A limitDoor is one way by which users set limits, with all numbers that it takes.
type limitDoor struct {
	kind    string
	names   func(limitDoors) string
	numbers []string
}

func limitDoorsOfUsers(t *testing.T) []limitDoor {
	t.Helper()
	a := newApp(&console.Console{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: func(string) string { return "" }}, 0)
	run, _, err := a.newRoot().Find([]string{"run"})
	if err != nil {
		t.Fatal(err)
	}
	var flags []string
	run.Flags().VisitAll(func(f *pflag.Flag) {
		if slices.Contains([]string{"int", "int32", "int64", "uint", "uint64", "float64", "duration", "tokens", "usd"}, f.Value.Type()) {
			flags = append(flags, f.Name)
		}
	})
	return []limitDoor{
		{"flag", func(d limitDoors) string { return d.flag }, flags},
		{"setting", func(d limitDoors) string { return d.setting }, numberSettings(config.SettingsSchema(), "")},
		{"key of agent files", func(d limitDoors) string { return d.file }, agentfile.NumericKeys()},
		{"field of requests", func(d limitDoors) string { return d.request }, numberJSON(reflect.TypeFor[client.RunRequest](), "")},
	}
}

// Each limit of an agent and of a run can be set by a flag, a setting, a key of agent files and a field
// of requests, which Go programs fill, too; or the table says why not. The walk starts at each door, too: a number that
// only one of them takes is in the table, or does not limit anything.
//
//behaviour:shows K19
func TestEveryLimitHasEveryDoor(t *testing.T) {
	docs, err := os.ReadFile(filepath.Join("..", "..", "docs", "limits.md"))
	if err != nil {
		t.Fatal(err)
	}
	fields := slices.Concat(numberFields(reflect.TypeFor[spec.Limits](), "Limits"), numberFields(reflect.TypeFor[spec.RunLimits](), "RunLimits"),
		numberFields(reflect.TypeFor[spec.LoopOptions](), "LoopOptions"))
	if len(fields) < 40 || numberFields(reflect.TypeFor[struct{ A time.Duration }](), "")[0] != ".A" {
		t.Errorf("only %d limits are found", len(fields))
	}
	for _, field := range fields {
		if _, known := limitsTable[field]; !known {
			t.Errorf("%s: the table of limits does not say how a user sets it", field)
		}
	}
	for _, door := range limitDoorsOfUsers(t) {
		named := map[string]bool{}
		for limit, doors := range limitsTable {
			if strings.HasPrefix(door.names(doors), "- ") { // the reason
				continue
			}
			for i, name := range strings.Fields(door.names(doors)) {
				named[name] = true
				if !slices.Contains(door.numbers, name) {
					t.Errorf("%s: there is no %s %q", limit, door.kind, name)
				}
				if shown := strings.TrimSuffix(strings.TrimPrefix(name, "x-troupe.limits."), ".*"); i == 0 && !strings.Contains(string(docs), "`"+shown+"`") && door.kind != "field of requests" {
					t.Errorf("%s: docs/limits.md does not name the %s `%s`", limit, door.kind, shown)
				}
			}
			if door.names(doors) == "" {
				t.Errorf("%s: the table names neither a %s nor the reason why there is none", limit, door.kind)
			}
		}
		if len(door.numbers) < 25 {
			t.Errorf("%s: only %d numbers are found", door.kind, len(door.numbers))
		}
		for _, name := range door.numbers {
			if !named[name] && !isNoLimit(name) {
				t.Errorf("the %s %q is a number, and the table of limits does not have it", door.kind, name)
			}
		}
	}
}
