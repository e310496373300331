package cli

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/spf13/pflag"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/config/agentfile"
)

// limitDoors says under which name users set a limit at each door; a text that begins with "-" is the
// reason why there is none.
type limitDoors struct{ flag, setting, file, request string }

// everywhere is a limit of each agent with the same name at all doors.
func everywhere(key string) limitDoors {
	return limitDoors{strings.ReplaceAll(key, "_", "-"), key, "x-troupe.limits." + key, key}
}

const (
	ofTheRun   = "- it limits the whole tree: no agent of it could set it"
	ofRoot     = "- it says what the run's answer needs: of one agent, an agent file says it"
	detailOf   = "- a detail of a behaviour that has its door as a whole: settings and agent files"
	otherLimit = "- agents have the run's; a part of it is budget.share"
)

// limitsTable has the doors of each limit, by its field in the Go API.
var limitsTable = map[string]limitDoors{
	"Limits.Turns":      {"max-turns", "max_turns", "maxTurns", "max_turns"},
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

	"LoopOptions.ToolRetries":       {"tool-retries", "tool_retries", "x-troupe.tool_retries", "tool_retries"},
	"LoopOptions.PatienceMS":        {"patience", "patience", "x-troupe.patience", "patience_ms"},
	"LoopOptions.QuestionMS":        {"question-timeout", "question_timeout", "x-troupe.question_timeout", "question_timeout_ms"},
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
	"LoopOptions.Continue.Tokens":   {"use-tokens", "use_tokens", "x-troupe.continue.tokens", "use_tokens"},
	"LoopOptions.Continue.Percent":  {detailOf, "continue.percent", "x-troupe.continue.percent", "loop_options.continue.percent"},
	"LoopOptions.Continue.Small":    {detailOf, "continue.small", "x-troupe.continue.small", "loop_options.continue.small"},
	"LoopOptions.Continue.Rounds":   {detailOf, "continue.rounds", "x-troupe.continue.rounds", "loop_options.continue.rounds"},
}

// numberFields are the paths of all whole numbers of a struct.
func numberFields(t reflect.Type, path string) (list []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		switch f.Type.Kind() {
		case reflect.Int, reflect.Int64:
			list = append(list, path+"."+f.Name)
		case reflect.Struct:
			list = append(list, numberFields(f.Type, path+"."+f.Name)...)
		}
	}
	return list
}

// hasJSONField reports whether a struct has a field with that path of JSON names.
func hasJSONField(t reflect.Type, path string) bool {
	name, rest, deeper := strings.Cut(path, ".")
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous && hasJSONField(f.Type, path) {
			return true
		}
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name {
			return !deeper || hasJSONField(f.Type, rest)
		}
	}
	return false
}

// hasSetting reports whether the schema of settings has a key; a dot leads into a mapping.
func hasSetting(s *jsonschema.Schema, path string) bool {
	name, rest, deeper := strings.Cut(path, ".")
	p := s.Properties[name]
	if p == nil {
		return slices.ContainsFunc(s.AnyOf, func(part *jsonschema.Schema) bool { return hasSetting(part, path) })
	}
	return !deeper || hasSetting(p, rest)
}

// acceptsKey reports whether an agent file may have that key with a number or a duration.
func acceptsKey(path string) bool {
	for _, value := range []string{"2", "2m", "50"} {
		text, indent := "", ""
		for _, part := range strings.Split(path, ".") {
			text += "\n" + indent + part + ":"
			indent += "  "
		}
		_, notes, err := agentfile.Parse("a.md", []byte("---\nname: a\ndescription: d"+text+" "+value+"\n---\nDo it.\n"))
		if err == nil && !slices.ContainsFunc(notes, func(n agentfile.Note) bool { return strings.Contains(n.Text, "unknown key") }) {
			return true
		}
	}
	return false
}

// Each limit of an agent and of a run can be set by a flag, a setting, a key of agent files and a field
// of requests, which Go programs fill, too; or the table says why not.
func TestEveryLimitHasEveryDoor(t *testing.T) {
	a := newApp(&console.Console{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: func(string) string { return "" }}, 0)
	run, _, err := a.newRoot().Find([]string{"run"})
	if err != nil {
		t.Fatal(err)
	}
	docs, err := os.ReadFile(filepath.Join("..", "..", "docs", "limits.md"))
	if err != nil {
		t.Fatal(err)
	}
	fields := slices.Concat(numberFields(reflect.TypeFor[spec.Limits](), "Limits"), numberFields(reflect.TypeFor[spec.RunLimits](), "RunLimits"),
		numberFields(reflect.TypeFor[spec.LoopOptions](), "LoopOptions"))
	if len(fields) < 40 {
		t.Errorf("only %d limits are found", len(fields))
	}
	settings := config.SettingsSchema()
	for _, field := range fields {
		doors, known := limitsTable[field]
		if !known {
			t.Errorf("%s: the table of limits does not say how a user sets it", field)
			continue
		}
		for _, door := range []struct {
			kind, name string
			open       func(string) bool
		}{
			{"flag", doors.flag, func(name string) bool { return run.Flags().Lookup(name) != nil }},
			{"setting", doors.setting, func(name string) bool { return hasSetting(settings, name) }},
			{"key of agent files", doors.file, acceptsKey},
			{"field of requests", doors.request, func(name string) bool { return hasJSONField(reflect.TypeFor[client.RunRequest](), name) }},
		} {
			switch {
			case strings.HasPrefix(door.name, "-"): // the reason
			case !door.open(door.name):
				t.Errorf("%s: there is no %s %q", field, door.kind, door.name)
			case !strings.Contains(string(docs), "`"+strings.TrimPrefix(door.name, "x-troupe.limits.")+"`") && door.kind != "field of requests":
				t.Errorf("%s: docs/limits.md does not name the %s `%s`", field, door.kind, door.name)
			}
		}
	}
	named := map[string]bool{}
	for _, d := range limitsTable {
		named[d.flag] = true
	}
	run.Flags().VisitAll(func(f *pflag.Flag) {
		if kind := f.Value.Type(); (kind == "int" || kind == "int64") && !named[f.Name] && f.Name != "max-live-runs" { // of nodes
			t.Errorf("--%s is a number, and the table of limits does not have it", f.Name)
		}
	})
}
