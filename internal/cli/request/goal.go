package request

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/amount"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/guardrail"
	"github.com/troupe-run/troupe/internal/loopoptions"
	"github.com/troupe-run/troupe/internal/safefile"
	"github.com/troupe-run/troupe/internal/schema"
	"github.com/troupe-run/troupe/internal/workdir"
)

// SentenceFlags are the flags of sentences that agents read. The settings of the same names add to them.
var SentenceFlags = []string{"constraints", "criteria", "fail-if"}

// goalFlags are the flags of run and start about the goal: requirements of the answer,
// the budget to use up, and the fallback models.
type goalFlags struct {
	schema     string
	guardrails []string
}

func (r *Flags) addGoalFlags(f *pflag.FlagSet) {
	q := &r.Request
	f.StringSliceVar(&q.Fallback, "fallback", nil, fmt.Sprintf("models to use, in order, when the previous one has failed, at most %d", spec.FallbacksMax))
	f.StringArrayVar(&q.RequireTool, "require-tool", nil,
		"tool whose result the answer requires: NAME, or NAME=TEXT if the result must contain TEXT; may be repeated")
	f.StringArrayVar(&q.Constraints, SentenceFlags[0], nil, fmt.Sprintf("constraint on the work of all agents, a sentence that they read; may be repeated, at most %d", spec.FailureConditionsMax))
	f.StringArrayVar(&q.Criteria, SentenceFlags[1], nil, fmt.Sprintf("criterion of success, a sentence that agents read; may be repeated, at most %d", spec.FailureConditionsMax))
	f.StringArrayVar(&q.FailureConditions, SentenceFlags[2], nil, fmt.Sprintf("condition under which the run has failed, a sentence that agents read; may be repeated, at most %d", spec.FailureConditionsMax))
	f.StringSliceVar(&r.goal.guardrails, "guardrails", nil,
		"ready guardrails of all agents, NAME, NAME:ACTION or NAME:ACTION:SEVERITY: secrets, injection, size; warn, "+
			"block or end; low, medium, high or critical")
	f.StringVar(&r.goal.schema, "json-schema", "", "file with the JSON Schema of the answer, at most 32 KiB")
	f.Var(amount.Tokens{Into: &q.UseTokens}, "use-tokens",
		"output tokens for the root agent to use up; it may stop at 90 %, or when continuing brings little")
}

// completeGoal reads the files behind the flags and the settings.
func (r *Flags) completeGoal(origins *Origins) error {
	q := &r.Request
	for i, name := range q.Fallback {
		route, err := absoluteModel(name)
		if err != nil {
			return err
		}
		q.Fallback = slices.Clone(q.Fallback)
		q.Fallback[i] = route
	}
	for _, list := range []*[]string{&q.Constraints, &q.Criteria, &q.FailureConditions} {
		*list = splitSentences(*list)
	}
	if r.goal.schema != "" {
		text, err := readSchema(origins.SchemaBelow, r.goal.schema)
		if err != nil {
			return exit.UsageError("--json-schema names a file with a JSON Schema", "--json-schema %s: %s", r.goal.schema, strings.TrimPrefix(err.Error(), loopoptions.ErrInvalid.Error()+": "))
		}
		q.JSONSchema = text
	}
	m, guardrails, err := readShared(q.Dir)
	if err != nil {
		return &exit.Failure{Code: exit.Usage, Err: errors.New(agentfile.Sentences(err)), Hint: "troupe config validate shows all that is wrong; see " + agentfile.PageOf(err)}
	}
	if q.Guardrails, err = r.parseGuardrails(); err != nil {
		return err
	}
	q.Guardrails = append(q.Guardrails, guardrails...)
	if !reflect.ValueOf(m).IsZero() {
		q.LoopOptions = &m
	}
	return nil
}

// splitSentences makes each line a sentence of its own: a setting holds several in one value.
func splitSentences(list []string) []string {
	var out []string
	for _, text := range list {
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" {
				out = append(out, line)
			}
		}
	}
	return out
}

// parseGuardrails reads the guardrails of the flag.
func (r *Flags) parseGuardrails() ([]spec.ReadyGuardrail, error) {
	var list []spec.ReadyGuardrail
	for _, text := range r.goal.guardrails {
		list = append(list, guardrail.Parse(text))
	}
	if _, err := guardrail.Hooks(list); err != nil {
		return nil, exit.UsageError("such as --guardrails secrets,injection:end; patterns stand in a file of settings or of an agent: see docs/guardrails.md", "--guardrails: %v", err)
	}
	return list, nil
}

// readShared returns the loop options of the settings, where the file of the directory takes precedence over the
// user's, and the guardrails of both.
func readShared(dir string) (spec.LoopOptions, []spec.ReadyGuardrail, error) {
	user, err := agentfile.LoadShared(config.UserFile())
	if err != nil {
		return user.LoopOptions, nil, err
	}
	local, err := agentfile.LoadDirShared(cmp.Or(dir, "."), config.FileName)
	return local.LoopOptions.Merge(user.LoopOptions), slices.Concat(local.Guardrails, user.Guardrails), err
}

// readSchema reads a file, below a directory if a file of that directory names it.
func readSchema(below, path string) ([]byte, error) {
	var text []byte
	var err error
	if below == "" {
		text, err = safefile.Read(path, schema.BytesMax)
	} else {
		if rel, ok := workdir.Below(below, path); ok {
			path = rel
		}
		text, err = safefile.ReadBelow(workdir.Real(below), path, schema.BytesMax)
	}
	if err != nil {
		return nil, safefile.WithoutName(err)
	}
	if err := loopoptions.CheckRequire(spec.Require{Schema: string(text)}); err != nil {
		return nil, err
	}
	return text, checkSchemaTypes(text)
}

// schemaTypes are the values of the keyword type.
var schemaTypes = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// checkSchemaTypes refuses a type that JSON Schema does not have: no answer would ever fit it.
func checkSchemaTypes(text []byte) error {
	var root any
	if err := json.Unmarshal(text, &root); err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	var walk func(node any, isSchema bool) error
	walk = func(node any, isSchema bool) error {
		m, isObject := node.(map[string]any)
		if list, isList := node.([]any); isList {
			for _, item := range list {
				if err := walk(item, isSchema); err != nil {
					return err
				}
			}
		}
		if !isObject {
			return nil
		}
		for _, key := range slices.Sorted(maps.Keys(m)) {
			switch value, isText := m[key].(string); {
			case isSchema && key == "type" && isText && !slices.Contains(schemaTypes, value):
				return fmt.Errorf("%q is not a type of JSON Schema%s", value, didYouMean(config.NearestName(value, schemaTypes)))
			case slices.Contains([]string{"enum", "const", "default", "examples"}, key):
				continue // values, not schemas
			}
			if err := walk(m[key], !slices.Contains([]string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}, key) || !isSchema); err != nil {
				return err
			}
		}
		return nil
	}
	return walk(root, true)
}

func didYouMean(name string) string {
	if name == "" {
		return "; the types are " + strings.Join(schemaTypes, ", ")
	}
	return "; did you mean " + name + "?"
}

// absoluteModel makes the path of a script one: the node may have another directory.
func absoluteModel(route string) (string, error) {
	path, ok := strings.CutPrefix(route, scriptPrefix)
	if !ok || path == "" {
		return route, nil
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("model %s: %w", route, err)
	}
	// a whole path may be one of the node's machine
	if _, err := os.Stat(abs); errors.Is(err, os.ErrNotExist) && !filepath.IsAbs(path) {
		if _, err := os.Stat("/" + path); err == nil { // as troupe shows the route (term.ModelName)
			return scriptPrefix + "/" + path, nil
		}
		return "", exit.UsageError("name an existing file; see docs/models.md#scripted-models",
			"model %s: there is no file %s", route, abs)
	}
	return scriptPrefix + abs, nil
}
