package runspec

import (
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/supervisor"
)

// definitionBytesMax bounds the total size of a run's definitions: they are in its first
// entry, with everything else that it begins with.
const definitionBytesMax = 112 << 10

// definitionsMax bounds the number of a run's definitions, built-in ones included: each also has its
// rights, hooks and limits in the first entry.
const definitionsMax = 64

func definitionSize(d supervisor.Definition) int {
	return len(d.System) + len(d.Description) + len(d.LoopOptions.Require.Schema) + len(d.Source)
}

// fitDefinitions removes agents of a directory that holds more than a run has room for: first those that can
// never be called, then those furthest from the requested agents, and among equals the last.
// Requested agents stay; if they alone are too large, fit refuses the run.
func fitDefinitions(t agentSet, requested []string) (agentSet, error) {
	wanted := append(slices.Clone(requested), t.root)
	size, needed := 0, 0
	for _, d := range t.definitions {
		size += definitionSize(d)
		if slices.Contains(wanted, d.Name) {
			needed += definitionSize(d)
		}
	}
	if size <= definitionBytesMax && len(t.definitions) <= definitionsMax {
		return t, nil
	}
	if needed > definitionBytesMax {
		return t, refuse.Bad("move reference text from the agent's file into a skill or a file that it reads", "the prompts of %s have %d bytes, at most %d fit a run",
			strings.Join(slices.Compact(wanted), ", "), needed, definitionBytesMax)
	}
	stays := map[string]bool{}
	for _, d := range reachableFrom(t.definitions, wanted) {
		must := slices.Contains(wanted, d.Name)
		if n := definitionSize(d); must || needed+n <= definitionBytesMax && len(stays) < definitionsMax {
			stays[d.Name] = true
			if !must {
				needed += n
			}
		}
	}
	var kept []supervisor.Definition
	var out []string
	for _, d := range t.definitions {
		if stays[d.Name] {
			kept = append(kept, d)
		} else {
			out = append(out, d.Name)
		}
	}
	t.definitions = kept
	t.addWarning("%d of %d agents are left out, among them %s: a run has room for %d agents with prompts of %d bytes, and all have %d bytes; delegates in a file say which it needs",
		len(out), len(out)+len(kept), strings.Join(out[:min(len(out), 3)], ", "), definitionsMax, definitionBytesMax, size)
	return t, nil
}

// reachableFrom returns the agents that these agents can call, directly or through others,
// in order of distance; these agents come first.
func reachableFrom(all []supervisor.Definition, from []string) (list []supervisor.Definition) {
	seen := map[string]bool{}
	for open := slices.Clone(from); len(open) > 0; {
		name := open[0]
		open = open[1:]
		if seen[name] {
			continue
		}
		i := slices.IndexFunc(all, func(d supervisor.Definition) bool { return d.Name == name })
		if i < 0 {
			continue
		}
		seen[name] = true
		d := all[i]
		list = append(list, d)
		if d.Delegates != nil {
			open = append(open, d.Delegates...)
			continue
		}
		for _, d := range all {
			if !seen[d.Name] && !d.OnlyNamed {
				open = append(open, d.Name)
			}
		}
	}
	return list
}
