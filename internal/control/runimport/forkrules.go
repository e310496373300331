package runimport

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/workdir"
	"github.com/troupe-run/troupe/supervisor"
)

// machinePath begins the pattern of a rule that names a path of the machine, and not one below the run's directory.
const machinePath = "(//"

// checkRulesHold refuses a fork, or a move, after which a rule that denies or asks would no longer hold: it names a
// path in the directory of the original, and the files are in a copy. instead says what else the user may do.
func checkRulesHold(o supervisor.Opened, dir, instead string) error {
	all := []*spec.Permissions{o.Permissions}
	for _, d := range o.Definitions {
		all = append(all, d.Permissions)
	}
	for _, p := range all {
		if p == nil || o.Workspace == "" {
			continue
		}
		for _, rule := range slices.Concat(p.Deny, p.Ask) {
			if place, ok := placeOfRule(rule.Text); ok && (workdir.IsBelow(o.Workspace, place) || workdir.IsBelow(place, o.Workspace) && !workdir.IsBelow(place, dir)) {
				return badFile("name a path below the directory in the rule of the original, such as Read(./secrets/**), or "+instead,
					"the rule %.200s names a path in the directory of the original, and would not hold in the copy %s", rule.Text, dir)
			}
		}
	}
	return nil
}

// placeOfRule returns the path of the machine that a rule names, up to its first wildcard.
func placeOfRule(text string) (place string, ok bool) {
	_, pattern, ok := strings.Cut(text, machinePath)
	if !ok {
		return "", false
	}
	pattern = strings.TrimSuffix(pattern, ")")
	if i := strings.IndexAny(pattern, "*?[{"); i >= 0 {
		pattern = pattern[:i]
		pattern = pattern[:strings.LastIndexByte(pattern, '/')+1]
	}
	return filepath.Clean("/" + pattern), true
}

// withNarrowings returns the first entry of a run with what was taken from its agents while they worked, as if a definition said so.
func withNarrowings(s supervisor.State) supervisor.Opened {
	o := s.Run
	o.Definitions = slices.Clip(o.Definitions)
	for _, n := range s.Narrowings {
		rights := n.Rights.Permissions()
		o.Definitions = append(o.Definitions, supervisor.Definition{Permissions: &rights})
	}
	return o
}
