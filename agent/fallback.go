package agent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
)

// AttemptsMax bounds the attempts of one turn with the default limits: each model
// of the chain has its own retries. An agent walks the chain once in its lifetime,
// and never back.
const AttemptsMax = (1 + spec.RetriesMax) * (1 + spec.FallbacksMax)

// replaceable reports whether another model may succeed. An invalid request or a
// refusal would recur with any model; a configuration error is for the operator to
// fix.
func replaceable(c model.ErrorClass) bool {
	return c.Retryable() || c == model.Auth || c == model.UnknownClass
}

// fallback continues with the next model of the chain; at the end of the chain the
// loop ends. The failed model's partial reply is a tombstone. No measurement of
// the failed model applies to the next one, and data that only the failed model
// understands stays behind: adapters send opaque data to its issuer alone.
func fallback(s State, detail string) (State, []Effect) {
	next, ok := s.nextRoute()
	if !ok {
		before := tried(s.chain()[:s.Route+1])
		if n := len(before) - 1; n > 0 {
			detail = fmt.Sprintf("%s (%s, after %s)", detail, before[n], strings.Join(before[:n], ", "))
		}
		return finish(s, spec.Outcome{Reason: spec.ModelError, Text: s.found(), Partial: true, Detail: detail})
	}
	s.events.publish(retryEvents, event.KindModelFallback, event.Fallback{From: s.route().Name, To: s.chain()[next].Name, Error: s.events.cause})
	s.Route, s.Retries, s.Pause = next, 0, Pause{N: s.Pause.N}
	return nextTurn(s, spec.ModelFallback)
}

// nextRoute returns the next model of the chain that was not tried yet, if any.
func (s State) nextRoute() (int, bool) {
	chain := s.chain()
	before := tried(chain[:s.Route+1])
	next := s.Route + 1
	for next < len(chain) && slices.Contains(before, chain[next].Name) { //mutant:fallback-to-one-that-failed
		next++ // it has failed already
	}
	return next, next < len(chain)
}

// unpriced skips a fallback that the supervisor cannot cover: the run has a limit
// in money, and the price of the model is unknown.
func unpriced(s State, f Denied) (State, []Effect) {
	route := s.Route
	s.events.cause = fmt.Sprintf("skipped: the run has a limit in money, and the price of %s is not known", s.route().Name)
	s, fx := fallback(s, fmt.Sprintf("%s: the price of %s is not known", f.Why, s.route().Name))
	if s.Route != route {
		s.events.publish(retryEvents, event.KindWarningRaised, event.Warning{What: "a fallback model was skipped", Why: s.events.cause})
	}
	return s, fx
}

// chain is the models of the task in the order in which they are tried.
func (s State) chain() []spec.Model {
	more := s.Task.LoopOptions.Fallbacks
	return append([]spec.Model{s.Task.Model}, more[:min(len(more), spec.FallbacksMax)]...) //mutant:fallbacks-without-end
}

// tried names the models of a chain, each once.
func tried(chain []spec.Model) []string {
	var names []string
	for _, m := range chain {
		if !slices.Contains(names, m.Name) {
			names = append(names, m.Name)
		}
	}
	return names
}

// route is the model in use.
func (s State) route() spec.Model {
	if s.Route > 0 {
		return s.Task.LoopOptions.Fallbacks[s.Route-1]
	}
	return s.Task.Model
}

// outputLimit is how many of the wanted output tokens one call of the model can have.
func outputLimit(m spec.Model, want int64) int64 {
	if m.Output > 0 {
		return min(want, m.Output)
	}
	return want
}
