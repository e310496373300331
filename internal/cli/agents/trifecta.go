package agents

import (
	"errors"
	"slices"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/runspec"
	"github.com/troupe-run/troupe/supervisor"
)

// findTrifectas notes which agents of a roster can read text from outside, read private data and send data out. It asks
// what a run here would have. why says why that is not known; "": it is.
func (cs *Commands) findTrifectas(g Sources, list []Info) (why string) {
	o, _, err := PreviewRun(cs.Sessions, g, "", "")
	if err != nil {
		return explainPreview(err)
	}
	for i, a := range list {
		if a.Hidden != "" {
			continue
		}
		run := o
		d, known := definitionOf(run, a.Name)
		if !known { // only a run that begins with the agent has it
			if run, _, err = PreviewRun(cs.Sessions, g, "", a.Name); err != nil {
				if a.From != BuiltIn { // a broken file beside it keeps a run from the built-in agents, and says so itself
					why = explainPreview(err)
				}
				continue
			}
			d, _ = definitionOf(run, a.Name)
		}
		list[i].Trifecta = runspec.TrifectaOf(run, d)
	}
	return why
}

// explainPreview returns what an error of a run says to a person: its code is for programs.
func explainPreview(err error) string {
	if refused, ok := errors.AsType[*client.Error](err); ok {
		return refused.Text
	}
	return err.Error()
}

func definitionOf(o supervisor.Opened, name string) (d supervisor.Definition, ok bool) {
	i := slices.IndexFunc(o.Definitions, func(d supervisor.Definition) bool { return d.Name == name })
	if i < 0 {
		return d, false
	}
	return o.Definitions[i], true
}
