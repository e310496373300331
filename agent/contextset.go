package agent

import (
	"maps"
	"slices"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/promptlayer"
	"github.com/troupe-run/troupe/model"
)

// ContextSet changes the system prompt of an agent, and the tools that it is offered, from its next
// request on. The supervisor sends it for a person. A client puts only layers into the log of an agent:
// the supervisor decides about tools.
//
// A request that is under way is sent as it is. A reservation that is granted later was bounded by the prompt
// before: it is returned, and another one is requested, so that each request whose reservation is granted after
// the change is sent with it. There are two exceptions. The hooks of an agent may have computed a prompt for
// the turn, so an agent with hooks before its requests changes at its next turn. And a closing turn keeps its
// prompt: its reserve was computed for it.
type ContextSet struct {
	Layers []spec.Layer `msgpack:"l,omitempty"`
	// AddTools are offered from here on, each replacing a tool of the same name. Whether a call may run is
	// decided as for all others.
	AddTools []model.ToolSpec `msgpack:"t,omitempty"`
	// Commands and Servers are those that run AddTools, where they are not among those of the task.
	Commands []spec.Command `msgpack:"z,omitempty"`
	Servers  []spec.Server  `msgpack:"ms,omitempty"`
	// RemoveTools are no longer offered. A call of one that is under way goes on.
	RemoveTools []string `msgpack:"w,omitempty"`
	// Hashes are the versions of AddTools on the node that set them.
	Hashes map[string]string `msgpack:"x,omitempty"`
	By     string            `msgpack:"b,omitempty"`
}

// Kind is the fact's word in logs.
func (ContextSet) Kind() string { return "context_set" }

// Apply returns a task with the change.
func (f ContextSet) Apply(t spec.Task) spec.Task {
	t.Layers = promptlayer.Apply(t.Layers, f.Layers)
	t.Tools = slices.DeleteFunc(slices.Clone(t.Tools), func(known model.ToolSpec) bool { return slices.Contains(f.RemoveTools, known.Name) })
	for _, added := range f.AddTools {
		if i := slices.IndexFunc(t.Tools, func(known model.ToolSpec) bool { return known.Name == added.Name }); i >= 0 {
			t.Tools[i] = added
		} else {
			t.Tools = append(t.Tools, added)
		}
	}
	t.Commands = slices.DeleteFunc(slices.Clone(t.Commands), func(c spec.Command) bool { return slices.Contains(f.RemoveTools, c.Name) })
	for _, c := range f.Commands {
		if !slices.Contains(t.Commands, c) {
			t.Commands = append(t.Commands, c)
		}
	}
	for _, server := range f.Servers {
		if !slices.Contains(t.Servers, server) {
			t.Servers = append(slices.Clip(t.Servers), server)
		}
	}
	t.Forbidden = slices.DeleteFunc(slices.Clone(t.Forbidden), f.adds)
	if t.Hashes != nil && len(f.Hashes) > 0 {
		t.Hashes = maps.Clone(t.Hashes)
		maps.Copy(t.Hashes, f.Hashes)
	}
	return t
}

// adds reports whether a tool is added.
func (f ContextSet) adds(name string) bool {
	return slices.ContainsFunc(f.AddTools, func(t model.ToolSpec) bool { return t.Name == name })
}

// contextSetsMax bounds the changes that wait for the next request. Of further ones only the removal of tools counts.
const contextSetsMax = 64

// handleContextSet keeps a change for the next request. Of a client's it keeps the layers.
func handleContextSet(s *State, f ContextSet, bySupervisor bool) *State {
	if s.Phase == Done {
		return s
	}
	if !bySupervisor {
		f = ContextSet{Layers: f.Layers, By: f.By}
	}
	why := ""
	for _, l := range f.Layers {
		if err := promptlayer.Validate(l); err != nil {
			f.Layers, why = nil, err.Error()
			break
		}
	}
	if err := promptlayer.Check(promptlayer.Apply(NextTask(*s).Layers, f.Layers)); err != nil {
		f.Layers, why = nil, err.Error()
	}
	n := len(s.NextContext)
	switch {
	case len(f.Layers)+len(f.AddTools)+len(f.RemoveTools) == 0: // nothing is left of it
	case n < contextSetsMax:
		s.NextContext = append(slices.Clip(s.NextContext), f)
	default:
		why = "too many changes wait for the next request"
		s.NextContext = slices.Clone(s.NextContext)
		s.NextContext[n-1] = withoutTools(s.NextContext[n-1], f.RemoveTools)
	}
	if why != "" {
		s.events.publish(retryEvents, event.KindWarningRaised, event.Warning{What: "the context was not changed", Why: why})
	}
	return s
}

// withoutTools returns a change that also removes tools, those that it would add included.
func withoutTools(f ContextSet, names []string) ContextSet {
	gone := func(name string) bool { return slices.Contains(names, name) }
	f.AddTools = slices.DeleteFunc(slices.Clone(f.AddTools), func(t model.ToolSpec) bool { return gone(t.Name) })
	f.Commands = slices.DeleteFunc(slices.Clone(f.Commands), func(c spec.Command) bool { return gone(c.Name) })
	f.RemoveTools = append(slices.Clip(f.RemoveTools), names...)
	return f
}

// NextTask returns the task as the next request has it: with the changes that wait.
func NextTask(s State) spec.Task {
	t := s.Task
	for _, f := range s.NextContext {
		t = f.Apply(t)
	}
	return t
}

// mayChangeNow reports whether a change waits and can be part of the request that is being prepared. Hooks have
// computed the prompt of a turn from what it was before.
func mayChangeNow(s *State) bool {
	return len(s.NextContext) > 0 && s.ClosingReason == "" && len(s.hooks.at(spec.HookContext, "")) == 0 //mutant:context-never-adopted
}

// adoptContext begins to use the layers and tools that were set. The provider's report of the prompt before says
// nothing about the one that follows.
func adoptContext(s *State) *State {
	if len(s.NextContext) == 0 {
		return s
	}
	known := slices.Clone(s.Task.Tools)
	for _, f := range s.NextContext {
		s.events.publish(retryEvents, event.KindContextChanged, f.describe())
		known = append(known, f.AddTools...)
	}
	offered := func(t model.ToolSpec) bool {
		return s.tools.knows(t.Name) || slices.ContainsFunc(known[len(s.Task.Tools):], func(o model.ToolSpec) bool { return o.Name == t.Name })
	}
	next := NextTask(*s)
	specs := slices.DeleteFunc(slices.Clone(next.Tools), func(t model.ToolSpec) bool { return !offered(t) })
	s.Task, s.NextContext = next, nil
	s.tools = compileTools(s.Task, specs)
	s.hooks = compileHooks(s.Task, s.tools)
	if s.Force != model.ChoiceAny && !slices.ContainsFunc(s.Task.Tools, func(t model.ToolSpec) bool { return t.Name == s.Force }) {
		s.Force = ""
	}
	s.Anchor = promptAnchor{}
	return s
}

// replaceOutdated returns a reservation that was requested for the prompt before a change, and requests another one.
func replaceOutdated(s *State) (*State, []Effect) {
	s, fx := settleAhead(s, Settle{Reservation: s.Reservation, Turn: s.Turn})
	s.Open = false
	return prependEffects(fx)(requestReservation(s, s.Transition))
}

// describe is the change as observers see it, without the texts.
func (f ContextSet) describe() event.ContextChanged {
	c := event.ContextChanged{By: f.By, ToolsRemoved: f.RemoveTools}
	for _, l := range f.Layers {
		c.Layers = append(c.Layers, event.LayerChanged{Name: l.Name, Owner: l.Owner, Agent: l.Agent, Priority: l.Priority, Bytes: len(l.Text), Removed: l.Text == ""})
	}
	for _, t := range f.AddTools {
		c.ToolsAdded = append(c.ToolsAdded, t.Name)
	}
	return c
}
