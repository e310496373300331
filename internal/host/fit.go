package host

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/supervisor"
)

// definitionBytesMax is how much the definitions of a run may say together: they
// are in its first entry, with all else that it begins with.
const definitionBytesMax = 112 << 10

func weight(d supervisor.Definition) int {
	return len(d.System) + len(d.Description) + len(d.Manners.Require.Schema) + len(d.Source)
}

// fit leaves out agents of a directory that holds more than a run has room for:
// first those that can never be called, then those that are furthest from who is
// asked for, and of equals the last. Who is asked for stays, and is refused if it is too large alone.
func fit(o *supervisor.Opened, r client.RunRequest, a *client.RunAccepted) error {
	wanted := append(asked(r), o.Root)
	size, needed := 0, 0
	for _, d := range o.Definitions {
		size += weight(d)
		if slices.Contains(wanted, d.Name) {
			needed += weight(d)
		}
	}
	if size <= definitionBytesMax {
		return nil
	}
	if needed > definitionBytesMax {
		return bad("move reference text from the agent's file into a skill or a file that it reads", "the prompts of %s have %d bytes, at most %d fit a run",
			strings.Join(slices.Compact(wanted), ", "), needed, definitionBytesMax)
	}
	stays := map[string]bool{}
	for _, d := range reach(o, wanted) {
		must := slices.Contains(wanted, d.Name)
		if n := weight(d); must || needed+n <= definitionBytesMax {
			stays[d.Name] = true
			if !must {
				needed += n
			}
		}
	}
	var kept []supervisor.Definition
	var out []string
	for _, d := range o.Definitions {
		if stays[d.Name] {
			kept = append(kept, d)
		} else {
			out = append(out, d.Name)
		}
	}
	o.Definitions = kept
	a.Notes = append(a.Notes, fmt.Sprintf("%d agents are left out, among them %s: their prompts have %d bytes together, at most %d fit a run; delegates in a file say which it needs",
		len(out), strings.Join(out[:min(len(out), 3)], ", "), size, definitionBytesMax))
	return nil
}

// reach is who can be called by these agents, or by whom those call: the
// nearest first, these before all.
func reach(o *supervisor.Opened, from []string) (list []supervisor.Definition) {
	seen := map[string]bool{}
	for open := slices.Clone(from); len(open) > 0; {
		name := open[0]
		open = open[1:]
		if seen[name] {
			continue
		}
		i := slices.IndexFunc(o.Definitions, func(d supervisor.Definition) bool { return d.Name == name })
		if i < 0 {
			continue
		}
		seen[name] = true
		d := o.Definitions[i]
		list = append(list, d)
		if d.Delegates != nil {
			open = append(open, d.Delegates...)
			continue
		}
		for _, d := range o.Definitions {
			if !seen[d.Name] {
				open = append(open, d.Name)
			}
		}
	}
	return list
}
