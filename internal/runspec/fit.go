package runspec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/permission"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/supervisor"
)

// definitionBytesMax bounds the total size of a run's definitions: they are in its first
// entry, with everything else that it begins with.
const definitionBytesMax = 112 << 10

// grantedBytesMax bounds the same size once tools are granted: the definitions then also name the tools of MCP servers.
const grantedBytesMax = 160 << 10

// definitionsMax bounds the number of a run's definitions, built-in ones included: each also has its
// rights, hooks and limits in the first entry.
const definitionsMax = 64

// nameBytes is the cost in bytes of each name in a list in addition to its length: an entry also bounds the number of
// its elements.
const nameBytes = 24

// namesFree is how many bytes of names and rules a definition may have that do not count: agents with a usual
// number of tools have as much room for their prompts as agents without.
const namesFree = 1 << 10

func definitionSize(d supervisor.Definition) int {
	names := 0
	for _, list := range [][]string{d.Tools, d.Offer, d.Deny, d.Delegates, d.Handoffs} {
		for _, name := range list {
			names += len(name) + nameBytes
		}
	}
	for _, sentence := range slices.Concat(d.Constraints, d.Criteria, d.FailIf) { // the definition and its prompt have it
		names += 2 * len(sentence)
	}
	for _, h := range d.LoopOptions.Hooks {
		names += len(h.Name) + len(h.Tools) + len(h.Command) + len(h.Rules)
	}
	for _, e := range d.LoopOptions.Require.Evidence {
		names += len(e.Tool) + len(e.Contains)
	}
	if p := d.Permissions; p != nil {
		names += permission.RuleBytes(*p) + nameBytes*(len(p.Allow)+len(p.Ask)+len(p.Deny)+len(slices.Concat(permission.LimitingRules(*p)...)))
	}
	for _, m := range d.LoopOptions.Fallbacks {
		names += len(m.Name)
	}
	return len(d.System) + len(d.Description) + len(d.LoopOptions.Require.Schema) + len(d.Source) + max(0, names-namesFree)
}

// fitDefinitions removes agents of a directory that holds more than a run has room for: first those that can
// never be called, then those furthest from the requested agents, and among equals the last.
// Requested agents stay; if they alone are too large, fitDefinitions refuses the run. The warning is "" if all fit.
func fitDefinitions(all []supervisor.Definition, most int, root string, requested []string) (kept []supervisor.Definition, warning string, err error) {
	wanted := append(slices.Clone(requested), root)
	size, needed := 0, 0
	for _, d := range all {
		size += definitionSize(d)
		if slices.Contains(wanted, d.Name) {
			needed += definitionSize(d)
		}
	}
	if size <= most && len(all) <= definitionsMax {
		return all, "", nil
	}
	if needed > most {
		return nil, "", refuse.Bad("move reference text from the agent's file into a skill or a file that it reads, and shorten long lists of tools and rules",
			"the prompts of %s have %d bytes, at most %d fit a run", strings.Join(slices.Compact(wanted), ", "), needed, most)
	}
	stays := map[string]bool{}
	for _, d := range reachableFrom(all, wanted) {
		must := slices.Contains(wanted, d.Name)
		if n := definitionSize(d); must || needed+n <= most && len(stays) < definitionsMax {
			stays[d.Name] = true
			if !must {
				needed += n
			}
		}
	}
	var out []string
	for _, d := range all {
		if stays[d.Name] {
			kept = append(kept, d)
		} else {
			out = append(out, d.Name)
		}
	}
	return kept, fmt.Sprintf("%d of %d agents are left out, among them %s: a run has room for %d agents with prompts, lists and rules of %d bytes, and all have %d bytes; list the agents that it needs under x-troupe.delegates",
		len(out), len(all), strings.Join(out[:min(len(out), 3)], ", "), definitionsMax, most, size), nil
}

// keepReachable removes the agents that none of the wanted ones can call, directly or through others: each
// definition is in the first entry of the run, and in the memory of its supervisor.
func keepReachable(all []supervisor.Definition, wanted []string) []supervisor.Definition {
	reached := map[string]bool{}
	for _, d := range reachableFrom(all, wanted) {
		reached[d.Name] = true
	}
	return slices.DeleteFunc(slices.Clone(all), func(d supervisor.Definition) bool { return !reached[d.Name] })
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
		open = append(open, d.Handoffs...)
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
