package agent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
)

// attemptsMax bounds the attempts of one turn with the default limits: each model
// of the chain has its own retries. An agent walks the chain once in its lifetime,
// and never back.
const attemptsMax = (1 + spec.RetriesMax) * (1 + spec.FallbacksMax)

// isReplaceable reports whether another model may succeed. An invalid request or a
// refusal would recur with any model; a configuration error is for the operator to
// fix.
func isReplaceable(c model.ErrorClass) bool {
	return c.Retryable() || c == model.Auth || c == model.Quota || c == model.UnknownClass
}

// useFallback continues with the next model of the chain; at the end of the chain the
// loop ends. The failed model's partial reply is a tombstone. No measurement of
// the failed model applies to the next one, and data that only the failed model
// understands stays behind: adapters send opaque data to its issuer alone.
func useFallback(s *State, detail string) (*State, []Effect) {
	next, ok := chainOf(&s.Task).nextAfter(s.Route)
	if !ok {
		before := chainOf(&s.Task)[:s.Route+1].names()
		if n := len(before) - 1; n > 0 {
			detail = fmt.Sprintf("%s (%s, after %s)", detail, before[n], strings.Join(before[:n], ", "))
		}
		return finishAgent(s, spec.Outcome{Reason: spec.ModelError, Text: partialResult(s), Partial: true, Detail: detail})
	}
	s.events.publish(retryEvents, event.KindModelFallback, event.Fallback{From: s.currentModel(&s.Task).Name, To: chainOf(&s.Task)[next].Name, Error: s.events.cause})
	s.Route, s.failureStreaks = next, s.withoutWait()
	s.Retries = 0
	return endTurn(s, spec.ModelFallback)
}

// nextAfter returns the next model of the chain that was not tried yet, if any.
func (chain modelChain) nextAfter(route int) (int, bool) {
	before := chain[:route+1].names()
	next := route + 1
	for next < len(chain) && slices.Contains(before, chain[next].Name) { //mutant:fallback-to-one-that-failed
		next++ // it has failed already
	}
	return next, next < len(chain)
}

// skipUnpriced skips a fallback that the supervisor cannot cover: the run has a limit
// in money, and the price of the model is unknown.
func skipUnpriced(s *State, f Denied) (*State, []Effect) {
	route := s.Route
	s.events.cause = fmt.Sprintf("skipped: the run has a limit in money, and the price of %s is not known", s.currentModel(&s.Task).Name)
	s, fx := useFallback(s, fmt.Sprintf("%s: the price of %s is not known", f.Why, s.currentModel(&s.Task).Name))
	if s.Route != route {
		s.events.publish(retryEvents, event.KindWarningRaised, event.Warning{What: "a fallback model was skipped", Why: s.events.cause})
	}
	return s, fx
}

// modelChain is the models of a task in the order in which they are tried.
type modelChain []spec.Model

func chainOf(t *spec.Task) modelChain {
	more := t.LoopOptions.Fallbacks
	return append(modelChain{t.Model}, more[:min(len(more), spec.FallbacksMax)]...) //mutant:fallbacks-without-end
}

// names lists the models of a chain, each once.
func (chain modelChain) names() []string {
	var names []string
	for _, m := range chain {
		if !slices.Contains(names, m.Name) {
			names = append(names, m.Name)
		}
	}
	return names
}

// outputLimit is how many of the wanted output tokens one call of the model can have.
func outputLimit(m spec.Model, want int64) int64 {
	if m.Output > 0 {
		return min(want, m.Output)
	}
	return want
}
