package agent

import (
	"maps"
	"slices"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
)

// ContextSet changes the system prompt of an agent, and the tools that it is offered, from its next request on. The
// supervisor sends it for a person, or a client puts it into the log of the agent.
//
// A request that is under way is sent as it is. A reservation that is granted later was bounded by the prompt before: it is returned,
// and another one is requested. So each request whose reservation is granted after the change is sent with it.
// A closing turn is sent as it was kept for: a longer prompt might not fit.
type ContextSet struct {
	Layers []spec.Layer `msgpack:"l,omitempty"`
	// Tools are offered from here on, each in place of one of its name. Whether a call may run is decided as for all others.
	Tools []model.ToolSpec `msgpack:"t,omitempty"`
	// Commands and Servers are those that run the Tools, where they are not among those of the task.
	Commands []spec.Command `msgpack:"z,omitempty"`
	Servers  []spec.Server  `msgpack:"ms,omitempty"`
	// Without are tools that are no longer offered. A call of one that is under way goes on.
	Without []string `msgpack:"w,omitempty"`
	// Hashes are the versions of Tools on the node that set them.
	Hashes map[string]string `msgpack:"x,omitempty"`
	By     string            `msgpack:"b,omitempty"`
}

// Kind is the fact's word in logs.
func (ContextSet) Kind() string { return "context_set" }

// Apply returns a task with the change.
func (f ContextSet) Apply(t spec.Task) spec.Task {
	t.Layers = spec.WithLayers(t.Layers, f.Layers)
	gone := func(known model.ToolSpec) bool {
		return slices.Contains(f.Without, known.Name) || f.offers(known.Name)
	}
	t.Tools = append(slices.DeleteFunc(slices.Clone(t.Tools), gone), f.Tools...)
	t.Commands = slices.DeleteFunc(slices.Clone(t.Commands), func(c spec.Command) bool { return slices.Contains(f.Without, c.Name) })
	for _, c := range f.Commands {
		if !slices.Contains(t.Commands, c) {
			t.Commands = append(slices.Clip(t.Commands), c)
		}
	}
	for _, server := range f.Servers {
		if !slices.Contains(t.Servers, server) {
			t.Servers = append(slices.Clip(t.Servers), server)
		}
	}
	t.Forbidden = slices.DeleteFunc(slices.Clone(t.Forbidden), f.offers)
	if t.Hashes != nil && len(f.Hashes) > 0 {
		t.Hashes = maps.Clone(t.Hashes)
		maps.Copy(t.Hashes, f.Hashes)
	}
	return t
}

// offers reports whether a tool is added.
func (f ContextSet) offers(name string) bool {
	return slices.ContainsFunc(f.Tools, func(t model.ToolSpec) bool { return t.Name == name })
}

// then returns one change for two that follow each other.
func (f ContextSet) then(g ContextSet) ContextSet {
	kept := slices.DeleteFunc(slices.Clone(f.Tools), func(t model.ToolSpec) bool { return slices.Contains(g.Without, t.Name) })
	left := slices.DeleteFunc(slices.Clone(f.Without), g.offers)
	both := ContextSet{Layers: slices.Concat(f.Layers, g.Layers), Tools: slices.Concat(kept, g.Tools), Without: slices.Concat(left, g.Without), By: g.By,
		Commands: slices.Concat(f.Commands, g.Commands), Servers: slices.Concat(f.Servers, g.Servers)}
	both.Hashes = maps.Clone(f.Hashes)
	if both.Hashes == nil {
		both.Hashes = g.Hashes
	} else {
		maps.Copy(both.Hashes, g.Hashes)
	}
	return both
}

func handleContextSet(s State, f ContextSet) State {
	if s.Phase == Done {
		return s
	}
	if s.NextContext != nil {
		f = s.NextContext.then(f)
	}
	if err := spec.CheckLayers(spec.WithLayers(s.Task.Layers, f.Layers)); err != nil {
		s.events.publish(retryEvents, event.KindWarningRaised, event.Warning{What: "the context was not changed", Why: err.Error()})
		return s
	}
	s.NextContext = &f
	return s
}

// adoptContext begins to use the layers and tools that were set. The provider's report of the prompt before says nothing about the
// one that follows.
func adoptContext(s State) State {
	f := s.NextContext
	if f == nil || s.ClosingReason != "" { //mutant:context-never-adopted
		return s
	}
	s.events.publish(retryEvents, event.KindContextChanged, f.describe())
	s.Task, s.NextContext = f.Apply(s.Task), nil
	s.tools = compileTools(s.Task, slices.DeleteFunc(slices.Clone(s.Task.Tools), func(t model.ToolSpec) bool { return !s.tools.knows(t.Name) && !f.offers(t.Name) }))
	s.hooks = compileHooks(s.Task, s.tools)
	if offered := func(t model.ToolSpec) bool { return t.Name == s.Force }; s.Force != "" && s.Force != "any" && !slices.ContainsFunc(s.Task.Tools, offered) {
		s.Force = ""
	}
	s.Anchor = Anchor{}
	return s
}

// replaceOutdated returns a reservation that was requested for the prompt before the change, and requests another one.
func replaceOutdated(s State) (State, []Effect) {
	s, fx := settleAhead(s, Settle{Reservation: s.Reservation, Turn: s.Turn})
	s.Open = false
	return prependEffects(fx)(requestReservation(s, s.Transition))
}

// describe is the change as observers see it, without the texts.
func (f ContextSet) describe() event.ContextChanged {
	c := event.ContextChanged{By: f.By, ToolsRemoved: f.Without}
	for _, l := range f.Layers {
		c.Layers = append(c.Layers, event.LayerChanged{Name: l.Name, Owner: l.Owner, Agent: l.Agent, Priority: l.Priority, Bytes: len(l.Text), Removed: l.Text == ""})
	}
	for _, t := range f.Tools {
		c.ToolsAdded = append(c.ToolsAdded, t.Name)
	}
	return c
}
