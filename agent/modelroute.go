package agent

import (
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/estimate"
)

// modelRoute is the model in use, and what its provider has reported of the sizes of prompts. A measurement belongs to
// one model: another one counts differently, so none applies to the next model of the chain.
type modelRoute struct {
	Route     int        // the model in use: 0 is Task.Model, n is the nth fallback
	NextModel *ModelSet  // takes the place of Task.Model before the next request; nil: none was set
	Sense     tokenSense // measurements of how the model in use counts tokens
	Anchor    promptAnchor
}

// promptAnchor is a prefix of the prompt whose size the provider reported.
type promptAnchor struct {
	Messages int   // how many messages of History it covers
	Tokens   int64 // 0: nothing reported yet
	Route    int   // of the model whose report it is: no other model counts like it
	Formless bool  // the schema of the answer was not sent with it
}

// coversRoute tells whether the provider of a model has reported the size of a part of the prompt.
func (a promptAnchor) coversRoute(route int) bool { return a.Tokens > 0 && a.Route == route }

// tokenSense holds the loop's measurements of how a model counts tokens. It belongs to
// one route: another model counts differently.
type tokenSense struct {
	Route int
	Ratio estimate.Ratio
	// Ceiling is the estimate of a prompt that the provider rejected as too long: the
	// window is not larger, whatever size the route names. 0: never.
	Ceiling int64
}

// currentModel is the model in use.
func (r modelRoute) currentModel(t *spec.Task) spec.Model {
	if r.Route > 0 {
		return t.LoopOptions.Fallbacks[r.Route-1]
	}
	return t.Model
}

// summaryModel is the model that writes summaries: that of the task's options, unless the agent's own has to.
func (r modelRoute) summaryModel(t *spec.Task, own bool) spec.Model {
	if m := t.LoopOptions.Context.Model; m != nil && !own {
		return *m
	}
	return r.currentModel(t)
}

// hasFallback reports whether the chain has another model that was not tried yet.
func (r modelRoute) hasFallback(t *spec.Task) bool {
	_, ok := chainOf(t).nextAfter(r.Route)
	return ok
}

// contextWindow is how many tokens a prompt and its reply may have together; 0 is unknown.
func (r modelRoute) contextWindow(t *spec.Task) int64 {
	known, refused := r.currentModel(t).Window, r.tokenMeasures().Ceiling
	if known == 0 || refused > 0 && refused < known {
		return refused
	}
	return known
}

// tokenMeasures returns the measurements of the model in use.
func (r modelRoute) tokenMeasures() tokenSense {
	if r.Sense.Route != r.Route {
		return tokenSense{Route: r.Route}
	}
	return r.Sense
}

// hasAnchor reports whether the provider of the model in use has reported the size of a part of the prompt.
func (r modelRoute) hasAnchor() bool { return r.Anchor.coversRoute(r.Route) }
