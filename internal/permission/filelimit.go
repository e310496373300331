package permission

import (
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
)

// FileLimit keeps one tool that reads files to those that fit a pattern. Decide compares the path that a call names;
// the tools compare the path that links lead to.
type FileLimit struct {
	Tool     string
	Patterns []string
}

// FileLimits returns the limits of an agent and its ancestors. A file must fit each limit of the tool.
func FileLimits(list []spec.Permissions) (limits []FileLimit) {
	for _, p := range list {
		for _, rules := range LimitingRules(p) {
			limits = append(limits, limitsOf(rules)...)
		}
	}
	return limits
}

// limitsOf returns the limits of one list of rules, one for each tool.
func limitsOf(rules []spec.PermissionRule) (limits []FileLimit) {
	for _, text := range rules {
		r, err := ParseAllow(text.Text)
		if err != nil || !slices.Contains(ReadTools, r.tool) { // with a rule that cannot be read no call runs
			continue
		}
		i := slices.IndexFunc(limits, func(l FileLimit) bool { return l.Tool == r.tool })
		if i < 0 {
			i, limits = len(limits), append(limits, FileLimit{Tool: r.tool})
		}
		if limits[i].Patterns = append(limits[i].Patterns, r.pattern); r.pattern == "" {
			limits[i].Patterns[len(limits[i].Patterns)-1] = "**" // the whole tool
		}
	}
	return limits
}

// Key is a text that two limits share only if they are equal.
func (l FileLimit) Key() string { return l.Tool + "\x02" + strings.Join(l.Patterns, "\x00") }

// KeepsWithin reports whether the limits let a tool use a path relative to the directory of a run.
func KeepsWithin(limits []FileLimit, workspace, tool, name string) bool {
	return !slices.ContainsFunc(limits, func(l FileLimit) bool {
		return l.Tool == tool && !slices.ContainsFunc(l.Patterns, func(p string) bool { return matchesPath(p, workspace, name) })
	})
}
