package agent

import (
	"fmt"
	"maps"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
)

// ModelSet gives an agent, or the agents that a run begins from here on, another model. It is in the logs of a fork
// only, before the fork's first activation, so no request of the fork itself is under way.
//
// The model changes between two requests: a request that has a reply in the log, or will get one from it, is of the
// model before, at its price. A reservation that is open, or asked for, was bounded by the prices of the model
// before: it is returned, and another one is requested.
type ModelSet struct {
	Model spec.Model `msgpack:"m"`
	// Summaries writes the summaries of a compaction; nil: Model.
	Summaries *spec.Model `msgpack:"s,omitempty"`
	// Version is that of the model's route on the node that set it.
	Version string `msgpack:"v,omitempty"`
}

// Kind is the fact's word in logs.
func (ModelSet) Kind() string { return "model_set" }

// Apply returns a task with the model. What its author allowed for every model stays: tools, fallbacks and limits.
func (f ModelSet) Apply(t spec.Task) spec.Task {
	t.Model, t.LoopOptions.Context.Model = f.Model, f.Summaries
	t.Hashes = maps.Clone(t.Hashes)
	if t.Hashes != nil {
		t.Hashes[spec.RouteVersion] = f.Version
	}
	return t
}

func handleModelSet(s *State, f ModelSet) *State {
	if s.Phase != Done {
		s.NextModel = &f //mutant:model-set-ignored
	}
	return s
}

// adoptModel begins to use the model that was set. No measurement of the model before applies to it.
func adoptModel(s *State) *State {
	f := s.NextModel
	if f == nil {
		return s
	}
	if from := s.currentModel(&s.Task).Name; s.Phase != "" && from != f.Model.Name {
		s.events.publish(retryEvents, event.KindWarningRaised, event.Warning{What: fmt.Sprintf("from here on the model is %s, before it was %s", f.Model.Name, from), Why: "the run was forked with another model"})
	}
	s.Task, s.NextModel = f.Apply(s.Task), nil                                                          //mutant:model-adopted-again
	s.Route, s.Retries, s.Anchor, s.Sense, s.Allowance.Attempts = 0, 0, promptAnchor{}, tokenSense{}, 0 //mutant:fallback-of-the-model-before
	return s
}

// replaceReservation returns a reservation that is for the model before the one that was set, and requests another
// one. The reservation was not used.
func replaceReservation(s *State) (*State, []Effect) {
	s, fx := settleAhead(s, Settle{Reservation: s.Reservation, Turn: s.Turn})
	s.Open = false
	return prependEffects(fx)(anotherAttempt(adoptModel(s)))
}
