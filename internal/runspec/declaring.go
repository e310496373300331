package runspec

import (
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/supervisor"
)

// grantDeclaring grants the tool that declares a failure to every agent of a run with failure conditions. Without
// conditions an agent whose definition lists its tools has it only if the list names it.
func grantDeclaring(defs []supervisor.Definition, req acceptedRequest) []supervisor.Definition {
	if !hasFailureConditions(defs, req) {
		return defs
	}
	defs = slices.Clone(defs)
	for i, d := range defs {
		for _, list := range []*[]string{&d.Tools, &d.Offer} {
			if *list != nil && !slices.Contains(*list, declareName) {
				*list = append(slices.Clone(*list), declareName)
			}
		}
		defs[i] = d
	}
	return defs
}

// hasFailureConditions reports whether the request, or an agent of the run, has failure conditions.
func hasFailureConditions(defs []supervisor.Definition, req acceptedRequest) bool {
	return len(req.FailureConditions) > 0 || slices.ContainsFunc(defs, func(d supervisor.Definition) bool { return len(d.FailIf) > 0 })
}

var declareName = agent.DeclareSpec().Name

// declaringTool names the tool by which an agent declares a failure; "": it is not offered one.
func declaringTool(d supervisor.Definition, req acceptedRequest) string {
	isOffered := d.Tools == nil || slices.Contains(d.Tools, declareName)
	isDenied := slices.Contains(d.Deny, declareName) || slices.Contains(disallowedTools(req.DisallowedTools), declareName)
	if !isOffered || isDenied || d.Offer != nil && !slices.Contains(d.Offer, declareName) {
		return ""
	}
	return declareName
}
