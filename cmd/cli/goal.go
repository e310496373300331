package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agentfile"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/settings"
)

// goalFlags are the flags of run and start about the goal: what the answer must
// have, what it may use up, and which models may take over.
type goalFlags struct{ schema string }

func (r *runFlags) addGoal(f *pflag.FlagSet) {
	q := &r.request
	f.StringSliceVar(&q.Fallback, "fallback", nil, fmt.Sprintf("models that take over when the one before has failed, at most %d", agent.FallbacksMax))
	f.StringArrayVar(&q.RequireTool, "require-tool", nil, "result that the answer needs, NAME or NAME=TEXT in it; may be repeated")
	f.StringVar(&r.goal.schema, "json-schema", "", "file with the JSON Schema of the answer, at most 32 KiB")
	f.Int64Var(&q.UseTokens, "use-tokens", 0, "output tokens to use up before the first agent may stop")
}

// completeGoal reads the files behind the flags and the settings.
func (r *runFlags) completeGoal() error {
	q := &r.request
	for i, name := range q.Fallback {
		route, err := absolute(name)
		if err != nil {
			return err
		}
		q.Fallback = slices.Clone(q.Fallback)
		q.Fallback[i] = route
	}
	if r.goal.schema != "" {
		text, err := readSchema(r.goal.schema)
		if err != nil {
			return usage("--json-schema names a file with a JSON Schema", "--json-schema %s: %s", r.goal.schema, err)
		}
		q.JSONSchema = text
	}
	m, err := mannersOf(q.Dir)
	if err != nil {
		return &failure{code: exitUsage, err: err, hint: "see docs/manners.md"}
	}
	if !reflect.ValueOf(m).IsZero() {
		q.Manners = &m
	}
	return nil
}

// mannersOf is what the settings say about loops: the file of the directory
// over the user's.
func mannersOf(dir string) (agent.Manners, error) {
	user, err := agentfile.Share(settings.UserFile())
	if err != nil {
		return user.Manners, err
	}
	local, err := agentfile.Share(filepath.Join(dir, settings.FileName))
	return local.Manners.Over(user.Manners), err
}

func readSchema(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%w: not a regular file", os.ErrInvalid)
	}
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, model.SchemaBytesMax+1))
	if err != nil {
		return nil, err
	}
	return text, agent.Require{Schema: string(text)}.Validate()
}

// absolute makes the path of a script one: the node may have another directory.
func absolute(route string) (string, error) {
	path, ok := strings.CutPrefix(route, scriptPrefix)
	if !ok || path == "" {
		return route, nil
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("model %s: %w", route, err)
	}
	return scriptPrefix + abs, nil
}
