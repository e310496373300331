package supervisor_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// parseContext is `context of=AGENT add=(search) without=(shell) by=ann`, and a layer on each line: `NAME TEXT`, or
// `NAME below TEXT`. No text removes the layer.
func parseContext(t *testing.T, d *datadriven.TestData) supervisor.ContextSet {
	t.Helper()
	f := supervisor.ContextSet{Agent: spec.ID(argValue(t, d, "of")), By: argValue(t, d, "by")}
	if arg, ok := d.Arg("add"); ok {
		for _, name := range arg.Vals {
			f.AddTools = append(f.AddTools, model.ToolSpec{Name: name, Class: model.Read})
		}
	}
	if arg, ok := d.Arg("without"); ok {
		f.RemoveTools = arg.Vals
	}
	for line := range strings.Lines(d.Input) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		rest, below := strings.CutPrefix(text, "below")
		f.Layers = append(f.Layers, spec.Layer{Name: name, Text: strings.TrimSpace(rest), Below: below})
	}
	return f
}

func printContext(f agent.ContextSet) string {
	out := "context-set" + printLayers(f.Layers)
	for _, t := range f.AddTools {
		out += " +" + t.Name
	}
	for _, name := range f.RemoveTools {
		out += " -" + name
	}
	return out
}

func printLayers(layers []spec.Layer) (out string) {
	for _, l := range layers {
		out += fmt.Sprintf(" layer={%s of=%s by=%s %q}", l.Name, l.Agent, l.Owner, l.Text)
	}
	return out
}
