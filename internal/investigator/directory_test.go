package investigator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/troupe-run/troupe/internal/toolset/builtin"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
)

// directoryTools are the real tools over a real directory.
func directoryTools(t testing.TB, root string) map[string]toolFunc {
	tools, err := builtin.Dir(root, builtin.Config{Writable: []string{"**"}})
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]toolFunc{}
	for _, one := range tools {
		byName[one.Spec().Name] = func(args map[string]any) (string, bool) {
			data, err := json.Marshal(args)
			if err != nil {
				return err.Error(), true
			}
			r, err := one.Call(context.Background(), tool.Call{Attempt: 1, Args: data, Metric: func(string, float64) {}})
			if err != nil {
				return err.Error(), true
			}
			return r.Text, r.Error
		}
	}
	return byName
}

// rememberReads returns the tools, each reading call of which is carried out once: further runs
// over the same directory start no git and see no file that an earlier one has written.
func rememberReads(tools map[string]toolFunc) map[string]toolFunc {
	type result struct {
		text   string
		failed bool
	}
	var results sync.Map
	remembering := map[string]toolFunc{}
	for name, call := range tools {
		remembering[name] = func(args map[string]any) (string, bool) {
			key := fmt.Sprint(name, args) // which prints maps in the order of their keys
			if r, ok := results.Load(key); ok && name != "write_file" {
				return r.(result).text, r.(result).failed
			}
			text, failed := call(args)
			results.Store(key, result{text, failed})
			return text, failed
		}
	}
	return remembering
}

// toolSpecs are the real descriptions and schemas, as far as there are any: they
// cost tokens too.
func toolSpecs(names []string) []model.ToolSpec {
	known := map[string]model.ToolSpec{}
	if tools, err := builtin.Dir(".", builtin.Config{}); err == nil {
		for _, one := range tools {
			known[one.Spec().Name] = one.Spec()
		}
	}
	var all []model.ToolSpec
	for _, n := range names {
		spec, ok := known[n]
		if !ok {
			spec = model.ToolSpec{Name: n, Class: model.Read, Description: "Give a task to a child agent and wait for its answer.",
				Schema: `{"type":"object","properties":{"agent":{"type":"string"},"task":{"type":"string"},"background":{"type":"boolean"}},"required":["task"],"additionalProperties":false}`}
		}
		all = append(all, spec)
	}
	return all
}
