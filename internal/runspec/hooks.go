package runspec

import (
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/guardrail"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/supervisor"
)

// runHooks are the hooks of a run, for all its agents.
type runHooks struct {
	hooks    []spec.Hook
	warnings []string
}

// addHooks adds the operator's own hooks to a run. Those of the directory's own settings do
// not count: a run in a repository must not execute the repository's commands.
func (b *Builder) addHooks(req acceptedRequest, options spec.LoopOptions, defs []supervisor.Definition) (h runHooks, err error) {
	h.hooks = slices.Concat(options.Hooks, b.cfg.Hooks)
	guardrails, err := requestGuardrails(req)
	if err != nil {
		return h, err
	}
	for _, g := range guardrails { // those of the node may be the same
		if !slices.Contains(h.hooks, g) {
			h.hooks = append(h.hooks, g)
		}
	}
	for _, d := range defs {
		if n := len(h.hooks) + len(d.LoopOptions.Hooks); n > spec.HooksMax {
			return h, refuse.Bad("give the agent fewer hooks",
				"%d hooks apply to agent %s (its own and this node's), at most %d are allowed", n, d.Name, spec.HooksMax)
		}
	}
	s := req.settings
	if s == nil || s.File == config.UserFile() {
		return h, nil
	}
	// The file has no effect, so its errors are not reported here.
	if s.HooksErr == nil && len(s.Hooks) > 0 {
		h.warnings = append(h.warnings, fmt.Sprintf("%s: ignored: its hooks; only those of %s and of agent files of --agents apply", s.File, config.UserFile()))
	}
	return h, nil
}

// requestGuardrails returns the hooks of the ready guardrails of a request and of the directory's settings. They only
// take rights away, so a repository may have them.
func requestGuardrails(req acceptedRequest) ([]spec.Hook, error) {
	hooks, err := guardrail.Hooks(req.Guardrails)
	if err != nil {
		return nil, refuse.Bad("see docs/guardrails.md", "guardrails: %v", err)
	}
	s := req.settings
	if s == nil || s.SharedErr != nil || s.File == config.UserFile() { // runPermissions reports the error
		return hooks, nil
	}
	local, err := guardrail.Hooks(s.Shared.Guardrails)
	if err != nil {
		return nil, refuse.Bad("see docs/guardrails.md", "%s: guardrails: %v", config.FileName, err)
	}
	return append(hooks, local...), nil
}
