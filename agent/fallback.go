package agent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/model"
)

// AttemptsMax bounds the attempts of one turn with the default limits: each
// model of the chain has its own retries. The chain is walked once in the life
// of an agent, and never back.
const AttemptsMax = (1 + RetriesMax) * (1 + FallbacksMax)

// replaceable: another model may do better. What is wrong with the request, and
// what the model refuses, goes with the loop; what is wrong with the
// configuration is the operator's to know.
func replaceable(c model.ErrorClass) bool {
	return c.Retryable() || c == model.Auth || c == model.UnknownClass
}

// fallback goes on with the next model of the chain; at its end the loop ends.
// What the failed model said is a tombstone. Nothing that was measured with it
// holds for the next one, and what only it understands stays behind: adapters
// send opaque data to its issuer alone.
func fallback(s State, detail string) (State, []Effect) {
	next, ok := s.nextRoute()
	if !ok {
		before := tried(s.chain()[:s.Route+1])
		if n := len(before) - 1; n > 0 {
			detail = fmt.Sprintf("%s (%s, after %s)", detail, before[n], strings.Join(before[:n], ", "))
		}
		return finish(s, Outcome{Reason: ModelError, Text: s.found(), Partial: true, Detail: detail})
	}
	s.Route, s.Retries, s.Pause = next, 0, Pause{N: s.Pause.N}
	return nextTurn(s, ModelFallback)
}

// nextRoute is the next model of the chain that was not tried yet, if any.
func (s State) nextRoute() (int, bool) {
	chain := s.chain()
	before := tried(chain[:s.Route+1])
	next := s.Route + 1
	for next < len(chain) && slices.Contains(before, chain[next].Name) { //mutant:fallback-to-one-that-failed
		next++ // it has failed already
	}
	return next, next < len(chain)
}

// unpriced skips a fallback that the supervisor cannot cover: the run has a
// limit in money, and nobody knows what the model costs.
func unpriced(s State, f Denied) (State, []Effect) {
	return fallback(s, fmt.Sprintf("%s: the price of %s is not known", f.Why, s.route().Name))
}

// chain is the models of the task in the order in which they are tried.
func (s State) chain() []Model {
	more := s.Task.Manners.Fallbacks
	return append([]Model{s.Task.Model}, more[:min(len(more), FallbacksMax)]...) //mutant:fallbacks-without-end
}

// tried names the models of a chain, each once.
func tried(chain []Model) []string {
	var names []string
	for _, m := range chain {
		if !slices.Contains(names, m.Name) {
			names = append(names, m.Name)
		}
	}
	return names
}

// route is the model in use.
func (s State) route() Model {
	if s.Route > 0 {
		return s.Task.Manners.Fallbacks[s.Route-1]
	}
	return s.Task.Model
}

// output is how many of the wanted output tokens one call of the model can have.
func (m Model) output(want int64) int64 {
	if m.Output > 0 {
		return min(want, m.Output)
	}
	return want
}
