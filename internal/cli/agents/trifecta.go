package agents

import (
	"slices"

	"github.com/troupe-run/troupe/internal/runspec"
	"github.com/troupe-run/troupe/supervisor"
)

// findTrifectas notes which agents of a roster can read text from outside, read private data and send data out. It asks
// what a run here would have. why says why that is not known; "": it is.
func (cs *Commands) findTrifectas(g Sources, list []Info) (why string) {
	o, _, err := PreviewRun(cs.Sessions, g, "", "")
	if err != nil {
		return err.Error()
	}
	for i, a := range list {
		if a.Hidden != "" {
			continue
		}
		run := o
		d, known := definitionOf(run, a.Name)
		if !known { // only a run that begins with the agent has it
			if run, _, err = PreviewRun(cs.Sessions, g, "", a.Name); err != nil {
				why = err.Error()
				continue
			}
			d, _ = definitionOf(run, a.Name)
		}
		list[i].Trifecta = runspec.TrifectaOf(run, d)
	}
	return why
}

func definitionOf(o supervisor.Opened, name string) (d supervisor.Definition, ok bool) {
	i := slices.IndexFunc(o.Definitions, func(d supervisor.Definition) bool { return d.Name == name })
	if i < 0 {
		return d, false
	}
	return o.Definitions[i], true
}
