package supervisor_test

import (
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
)

// readHooks reads hooks as a script writes them: NAME@POINT or NAME@POINT@OF. One
// whose name begins with "./" is a command.
func readHooks(texts []string) []spec.Hook {
	var hooks []spec.Hook
	for _, text := range texts {
		name, rest, _ := strings.Cut(text, "@")
		point, of, _ := strings.Cut(rest, "@")
		h := spec.Hook{Name: name, Point: spec.HookPoint(point), Of: of}
		if strings.HasPrefix(name, "./") {
			h.Command = name
		}
		hooks = append(hooks, h)
	}
	return hooks
}

// hooksShown prints the hooks of a task, with what counts when they fail.
func hooksShown(hooks []spec.Hook) string {
	if len(hooks) == 0 {
		return ""
	}
	names := make([]string, len(hooks))
	for i, h := range hooks {
		names[i] = h.Name
		if h.Failing != "" {
			names[i] += ":" + string(h.Failing)
		}
	}
	return " hooks=(" + strings.Join(names, " ") + ")"
}
